"""Trainings on sounds, large arrays and sources of the user's own: random access, generators, threads, processes."""

import time
import wave
from functools import lru_cache
from pathlib import Path

import files
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import audio, transforms

SIDE = 32


class Spectra:
    """WAV files read and turned into spectra by NumPy."""

    def __init__(self, rows=None):
        self.paths = sorted(Path(files.sounds()).glob("*/*.wav"))[:rows]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with wave.open(str(self.paths[index])) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(samples, 256)[::128]
        spectrum = np.log1p(np.abs(np.fft.rfft(frames * np.hanning(256)))).astype(np.float32)
        return spectrum[:64, :64][None], np.array(index % 2, np.int32)


class Remembering(Spectra):
    """The same, which keeps what it has read: only the first epoch reads files."""

    def __init__(self):
        super().__init__(240)
        self.read = lru_cache(None)(super().__getitem__)

    def __getitem__(self, index):
        return self.read(index)


class Waves:
    """Sounds in memory."""

    def __init__(self):
        self.samples = np.random.default_rng(5).standard_normal((files.DISTINCT, 16_000)).astype(np.float32)

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        return self.samples[index % files.DISTINCT], np.array(index % files.CLASSES, np.int32)


class Volumes:
    """Large arrays out of one mapped file."""

    def __init__(self):
        self.values = np.load(files.arrays(), mmap_mode="r")

    def __len__(self):
        return 10 * len(self.values)

    def __getitem__(self, index):
        return np.array(self.values[index % len(self.values)]), np.array(index % files.CLASSES, np.int32)


class Distant:
    """Small rows from a storage that takes its time to answer."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 6000

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return np.full((3, SIDE, SIDE), index % 7, np.float32), np.array(index % files.CLASSES, np.int32)


class Simulated:
    """Rows that are computed: a few sorts of small arrays."""

    def __len__(self):
        return 6000

    def __getitem__(self, index):
        draw = np.random.default_rng(index)
        values = np.sort(draw.random((3, SIDE, SIDE, 4), np.float32), axis=-1).mean(-1)
        return values, np.array(index % files.CLASSES, np.int32)


def walks():
    """Random walks, in plain Python."""
    draw = np.random.default_rng(11)
    for number in range(4000):
        place, walk = 0.0, []
        for step in draw.standard_normal(256).tolist():
            place = 0.9 * place + step
            walk.append(place)
        yield np.array(walk, np.float32), np.array(number % files.CLASSES, np.int32)


def own(source, **options):
    return ds.GeneratorDataset(source, ["x", "y"], **options)


def sounds_native():
    data = ds.SpeechCommandsDataset(files.sounds(), usage="all", num_parallel_workers=1)
    data = data.map(audio.Spectrogram(254, hop_length=250), ["waveform"], num_parallel_workers=1)
    data = data.map(audio.AmplitudeToDB(), ["waveform"]).map(lambda _: np.array([0], np.int32), ["label"], ["y"])
    return data.project(["waveform", "y"]).map(lambda y: y[0], ["y"]).batch(16, drop_remainder=True)


def sounds_filtered():
    steps = [audio.LowpassBiquad(16_000, 4000.0), audio.Vol(0.8), audio.Spectrogram(254, hop_length=250)]
    data = own(Waves(), shuffle=False).map(steps, ["x"], num_parallel_workers=2)
    return data.map(lambda x: x[None], ["x"]).batch(16, drop_remainder=True)


def sounds_python():
    return own(Spectra()).batch(16, drop_remainder=True)


def cached():
    return own(Remembering(), shuffle=True).batch(16, drop_remainder=True)


def large_arrays():
    return own(Volumes(), shuffle=True, num_parallel_workers=1).batch(8, drop_remainder=True)


def large_slices():
    values = np.random.default_rng(3).random((600, 3, 96, 96), np.float32)
    labels = np.arange(600, dtype=np.int32) % files.CLASSES
    return ds.NumpySlicesDataset((values, labels), ["x", "y"]).batch(16, drop_remainder=True)


def generated():
    return own(walks).batch(32, drop_remainder=True)


def threads():
    options = {"num_parallel_workers": 2, "python_multiprocessing": False, "shuffle": True}
    return own(Distant(0.004), **options).batch(16, drop_remainder=True)


def one_thread():
    return own(Distant(0.02), shuffle=True).batch(8, drop_remainder=True)


def processes():
    options = {"num_parallel_workers": 2, "python_multiprocessing": True, "shuffle": True}
    return own(Simulated(), **options).batch(16, drop_remainder=True)


def simulated():
    data = own(Simulated(), shuffle=False).map(transforms.TypeCast(np.float32), ["x"])
    return data.batch(32, drop_remainder=True)


def zipped():
    """Pictures computed in Python beside vectors that cost nothing."""
    extra = ds.NumpySlicesDataset({"z": np.zeros((6000, 4), np.float32)}, shuffle=False)
    data = ds.zip((own(Simulated(), shuffle=False), extra))
    return data.map(lambda x, z: x + z.mean(), ["x", "z"], ["x"]).project(["x", "y"]).batch(16, drop_remainder=True)
