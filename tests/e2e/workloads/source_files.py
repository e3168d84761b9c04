"""A few rows for every dataset class of MindSpore, in the file format that the class reads.

`SOURCES` maps a class to a function that writes its files into a folder and returns the class's arguments.
"""

import json
import struct
import wave
from functools import partial

import numpy as np
from PIL import Image

ROWS = 8
PIXELS = np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3)


def text(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def pictures(folder, *names, size=32):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        Image.fromarray(PIXELS).resize((size, size)).save(folder / name)


def numbered(pattern):
    return [pattern.format(number) for number in range(1, ROWS + 1)]


def sounds(folder, *names, rate=16000):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        with wave.open(str(folder / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(np.arange(1600, dtype=np.int16).tobytes())


def folder_of(folder):
    return {"dataset_dir": str(folder)}


def cifar(folder, name, rows, labels):
    """The reader wants the whole file, of which all but the first rows are zeros."""
    row = bytes(labels) + PIXELS.tobytes()
    with (folder / name).open("wb") as file:
        file.write(row * ROWS)
        file.truncate(rows * len(row))
    return {**folder_of(folder), "usage": "train", "num_samples": ROWS}


def idx(folder, images, labels, wide=None, **options):
    """MNIST's format; `wide`: the labels are rows of that many integers."""
    (folder / images).write_bytes(struct.pack(">4i", 2051, ROWS, 28, 28) + bytes(28 * 28 * ROWS))
    head = struct.pack(">3i", 3074, ROWS, wide) if wide else struct.pack(">2i", 2049, ROWS)
    (folder / labels).write_bytes(head + bytes(ROWS * (4 * wide if wide else 1)))
    return {**folder_of(folder), **options}


MNIST = partial(idx, images="train-images-idx3-ubyte", labels="train-labels-idx1-ubyte", usage="train")


def classes(folder):
    for name in ("cat", "dog"):
        pictures(folder / name, *numbered("{:04d}.jpg"))
    return folder_of(folder)


def rendered(folder):
    for name in ("negative", "positive"):
        pictures(folder / "train" / name, *numbered("{:04d}.png"))
    return {**folder_of(folder), "usage": "train"}


def lsun(folder):
    pictures(folder / "bedroom_train", *numbered("1_{}.jpg"))
    return {**folder_of(folder), "usage": "train", "classes": ["bedroom"]}


def omniglot(folder):
    pictures(folder / "images_background" / "Latin" / "character01", *numbered("0001_{:02d}.png"))
    return {**folder_of(folder), "background": True}


def random(_folder):
    from mindspore import dtype
    from mindspore.dataset import Schema

    schema = Schema()
    schema.add_column("x", de_type=dtype.float32, shape=[3])
    return {"total_rows": ROWS, "schema": schema}


def lines(folder, name, row, **options):
    text(folder / name, *[row] * ROWS)
    return {**folder_of(folder), **options}


def files(folder, name, row, **options):
    return {"dataset_files": str(text(folder / name, *[row] * ROWS)), **options}


def celeba(folder):
    pictures(folder, *numbered("{:06d}.jpg"))
    text(folder / "list_attr_celeba.txt", ROWS, "Smiling Young", *(f"{name} 1 -1" for name in numbered("{:06d}.jpg")))
    return folder_of(folder)


def caltech101(folder):
    from scipy.io import savemat

    pictures(folder / "101_ObjectCategories" / "accordion", *numbered("image_{:04d}.jpg"))
    notes = folder / "Annotations" / "accordion"
    notes.mkdir(parents=True)
    for name in numbered("annotation_{:04d}.mat"):
        savemat(notes / name, {"obj_contour": np.zeros((2, 4))})
    return folder_of(folder)


def cityscapes(folder):
    name = "aachen_{:06d}_000019_"
    pictures(folder / "leftImg8bit" / "train" / "aachen", *numbered(name + "leftImg8bit.png"))
    pictures(folder / "gtFine" / "train" / "aachen", *numbered(name + "gtFine_color.png"))
    return {**folder_of(folder), "usage": "train", "quality_mode": "fine", "task": "color"}


def coco(folder):
    names = numbered("{:012d}.jpg")
    pictures(folder / "train", *names)
    images = [{"id": at, "file_name": name, "height": 32, "width": 32} for at, name in enumerate(names, 1)]
    boxes = [
        {"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
        for at in range(1, ROWS + 1)
    ]
    found = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    notes = text(folder / "notes.json", json.dumps(found))
    return {"dataset_dir": str(folder / "train"), "annotation_file": str(notes)}


def div2k(folder):
    pictures(folder / "DIV2K_train_HR", *numbered("{:04d}.png"))
    pictures(folder / "DIV2K_train_LR_bicubic" / "X2", *numbered("{:04d}x2.png"))
    return folder_of(folder)


def flickr(folder):
    names = numbered("{}_photo.jpg")
    pictures(folder / "Images", *names)
    notes = text(folder / "captions.token", *(f"{name}#{at}\ta photo" for name in names for at in range(5)))
    return {"dataset_dir": str(folder / "Images"), "annotation_file": str(notes)}


def flowers(folder):
    from scipy.io import savemat

    pictures(folder / "jpg", *numbered("image_{:05d}.jpg"))
    numbers = np.arange(1, ROWS + 1)
    savemat(folder / "imagelabels.mat", {"labels": numbers})
    savemat(folder / "setid.mat", {"trnid": numbers, "valid": numbers, "tstid": numbers})
    return {**folder_of(folder), "usage": "train"}


def food(folder):
    pictures(folder / "images" / "apple_pie", *numbered("{}.jpg"))
    names = [f"apple_pie/{at}" for at in range(1, ROWS + 1)]
    text(folder / "meta" / "train.txt", *names)
    text(folder / "meta" / "classes.txt", "apple_pie")
    return {**folder_of(folder), "usage": "train"}


def kitti(folder):
    names = [f"{at:06d}" for at in range(ROWS)]
    pictures(folder / "data_object_image_2" / "training" / "image_2", *(f"{name}.png" for name in names))
    row = "Car 0.00 0 -1.57 1.0 1.0 9.0 9.0 1.5 1.6 3.4 1.0 1.0 9.0 -1.5"
    for name in names:
        text(folder / "data_object_label_2" / "training" / "label_2" / f"{name}.txt", row)
    return {**folder_of(folder), "usage": "train"}


def lfw(folder):
    pictures(folder / "lfw" / "Ann_Lee", *numbered("Ann_Lee_{:04d}.jpg"))
    text(folder / "people.txt", "1", "1", f"Ann_Lee\t{ROWS}")
    text(folder / "peopleDevTrain.txt", "1", f"Ann_Lee\t{ROWS}")
    text(folder / "lfw-names.txt", f"Ann_Lee\t{ROWS}")
    return {**folder_of(folder), "task": "people", "usage": "train", "image_set": "original"}


def manifest(folder):
    pictures(folder, *numbered("{}.jpg"))
    rows = [
        json.dumps({"source": str(folder / name), "usage": "train", "annotation": [{"name": "cat"}]})
        for name in numbered("{}.jpg")
    ]
    return {"dataset_file": str(text(folder / "all.manifest", *rows))}


def photo_tour(folder):
    place = folder / "liberty"
    pictures(place, "patches0000.bmp", size=1024)
    text(place / "info.txt", *(f"{at} 0" for at in range(16 * 16)))
    text(place / "m50_100000_100000_0.txt", *(f"{at} {at} 0 {at + 1} {at} 0 0" for at in range(ROWS)))
    return {**folder_of(folder), "name": "liberty", "usage": "train"}


def places(folder):
    pictures(folder / "val_256", *numbered("Places365_val_{:08d}.jpg"))
    text(folder / "places365_val.txt", *(f"{name} 0" for name in numbered("Places365_val_{:08d}.jpg")))
    text(folder / "categories_places365.txt", "/a/airfield 0")
    return {**folder_of(folder), "usage": "val", "small": True}


def boundaries(folder):
    from scipy.io import savemat

    pictures(folder / "img", *numbered("2008_{:06d}.jpg"))
    (folder / "cls").mkdir()
    for name in numbered("2008_{:06d}.mat"):
        picture = {"Segmentation": np.zeros((32, 32), np.uint8), "Boundaries": np.zeros((20, 1), object)}
        savemat(folder / "cls" / name, {"GTcls": picture})
    text(folder / "train.txt", *numbered("2008_{:06d}"))
    return {**folder_of(folder), "task": "Segmentation", "usage": "train"}


def sbu(folder):
    pictures(folder / "sbu_images", *numbered("m_{:04d}_1.jpg"))
    urls = [f"http://static.flickr.com/{at:04d}_1.jpg" for at in range(1, ROWS + 1)]
    text(folder / "SBU_captioned_photo_dataset_urls.txt", *urls)
    text(folder / "SBU_captioned_photo_dataset_captions.txt", *["a photo"] * ROWS)
    return folder_of(folder)


def stl10(folder):
    (folder / "train_X.bin").write_bytes(bytes(96 * 96 * 3 * ROWS))
    (folder / "train_y.bin").write_bytes(bytes([1] * ROWS))
    return {**folder_of(folder), "usage": "train"}


def sun(folder):
    pictures(folder / "a" / "abbey", *numbered("sun_{:04d}.jpg"))
    text(folder / "ClassName.txt", "/a/abbey")
    return folder_of(folder)


def svhn(folder):
    from scipy.io import savemat

    savemat(folder / "train_32x32.mat", {"X": np.zeros((32, 32, 3, ROWS), np.uint8), "y": np.ones((ROWS, 1))})
    return {**folder_of(folder), "usage": "train"}


def voc(folder):
    names = numbered("{:06d}")
    pictures(folder / "JPEGImages", *(f"{name}.jpg" for name in names))
    pictures(folder / "SegmentationClass", *(f"{name}.png" for name in names))
    text(folder / "ImageSets" / "Segmentation" / "train.txt", *names)
    return folder_of(folder)


def wider(folder):
    pictures(folder / "WIDER_train" / "images" / "0--Parade", *numbered("{}.jpg"))
    rows = (f"0--Parade/{name}\n1\n1 1 9 9 0 0 0 0 0 0 " for name in numbered("{}.jpg"))
    text(folder / "wider_face_split" / "wider_face_train_bbx_gt.txt", *rows)
    return {**folder_of(folder), "usage": "train"}


def imdb(folder):
    for kind in ("pos", "neg"):
        for name in numbered("{}_7.txt"):
            text(folder / "train" / kind / name, "a good film")
    return {**folder_of(folder), "usage": "train"}


def iwslt(folder, inside):
    place = folder.joinpath(*inside)
    for language in ("de", "en"):
        text(place / f"train.tags.de-en.{language}", *["a sentence"] * ROWS)
        for kind in ("dev2010", "tst2010", "tst2013", "tst2014"):
            body = "".join(f'<seg id="{at}"> a sentence </seg>' for at in range(1, ROWS + 1))
            for year in ("16", "17"):
                name = f"IWSLT{year}.TED.{kind}.de-en.{language}.xml"
                text(place / name, f"<mteval><srcset><doc>{body}</doc></srcset></mteval>")
    return {**folder_of(folder), "usage": "train", "language_pair": ["de", "en"]}


def multi30k(folder):
    for language in ("de", "en"):
        text(folder / "training" / f"train.{language}", *["a sentence"] * ROWS)
    return {**folder_of(folder), "usage": "train", "language_pair": ["en", "de"]}


def squad(folder):
    answers = {"id": "1", "question": "who", "answers": [{"text": "cat", "answer_start": 2}]}
    found = {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "a cat", "qas": [answers] * ROWS}]}]}
    text(folder / "train-v1.1.json", json.dumps(found))
    text(folder / "dev-v1.1.json", json.dumps(found))
    return {**folder_of(folder), "usage": "train"}


def sst2(folder):
    text(folder / "train.tsv", "sentence\tlabel", *["a good film\t1"] * ROWS)
    return {**folder_of(folder), "usage": "train"}


def arctic(folder):
    place = folder / "cmu_us_aew_arctic"
    sounds(place / "wav", *numbered("arctic_a{:04d}.wav"))
    text(place / "etc" / "txt.done.data", *(f'( {name} "a word" )' for name in numbered("arctic_a{:04d}")))
    return {**folder_of(folder), "name": "aew"}


def gtzan(folder):
    sounds(folder / "blues", *numbered("blues.{:05d}.wav"), rate=22050)
    return {**folder_of(folder), "usage": "all"}


def ljspeech(folder):
    sounds(folder / "wavs", *numbered("LJ001-{:04d}.wav"))
    text(folder / "metadata.csv", *(f"{name}|a word|a word" for name in numbered("LJ001-{:04d}")))
    return folder_of(folder)


def libri(folder):
    place = folder / "dev-clean" / "116" / "288045"
    names = numbered("116_288045_{:06d}_000000")
    sounds(place, *(f"{name}.wav" for name in names), rate=24000)
    text(place / "116_288045.trans.tsv", *(f"{name}\ta word\ta word" for name in names))
    return {**folder_of(folder), "usage": "dev-clean"}


def commands(folder):
    sounds(folder / "cat", *numbered("{}_nohash_0.wav"))
    return {**folder_of(folder), "usage": "all"}


def tedlium(folder):
    place = folder / "TEDLIUM_release1" / "train"
    (place / "sph").mkdir(parents=True)
    head = "NIST_1A\n   1024\nsample_count -i 1600\nsample_n_bytes -i 2\nchannel_count -i 1\nsample_rate -i 16000\n"
    head += "sample_byte_format -s2 10\nend_head\n"
    (place / "sph" / "Talk_2009.sph").write_bytes(head.encode().ljust(1024) + bytes(16000 * 2 * ROWS))
    rows = (f"Talk_2009 1 Talk {at * 0.01:.2f} {at * 0.01 + 0.01:.2f} <o,f0,female> a word" for at in range(ROWS))
    text(place / "stm" / "Talk_2009.stm", *rows)
    return {"dataset_dir": str(folder / "TEDLIUM_release1"), "release": "release1", "usage": "train"}


def yes_no(folder):
    sounds(folder, *(f"{at & 1}_{at >> 1 & 1}_{at >> 2 & 1}_0_1_1_0_0.wav" for at in range(ROWS)))
    return folder_of(folder)


def mind(folder):
    from mindspore.mindrecord import FileWriter

    path = str(folder / "rows.mindrecord")
    writer = FileWriter(path, 1)
    writer.add_schema({"x": {"type": "float32", "shape": [3]}}, "rows")
    writer.write_raw_data([{"x": np.full(3, number, np.float32)} for number in range(ROWS)])
    writer.commit()
    return {"dataset_files": path, "columns_list": ["x"]}


def checksum(data):
    """The masked CRC-32C of a TFRecord's length."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tf_record(folder):
    """Records of one feature, `x`."""

    def field(number, value):
        return bytes([number << 3 | 2, len(value)]) + value

    floats = field(2, field(1, struct.pack("<3f", 1, 2, 3)))
    example = field(1, field(1, field(1, b"x") + field(2, floats)))
    length = struct.pack("<Q", len(example))
    record = length + checksum(length) + example + checksum(example)
    (folder / "rows.tfrecord").write_bytes(record * ROWS)
    schema = {"datasetType": "TF", "numRows": ROWS, "columns": {"x": {"type": "float32", "rank": 1, "shape": [3]}}}
    return {
        "dataset_files": str(folder / "rows.tfrecord"),
        "schema": str(text(folder / "schema.json", json.dumps(schema))),
        "num_parallel_workers": 1,
    }


class Rows:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return (np.full(3, index, np.float32),)


CSV = '"1","a title","a text"'
CLUE = '{"sentence1": "a", "sentence2": "b", "label": "0"}'
SOURCES = {
    "AGNewsDataset": partial(lines, name="train.csv", row=CSV, usage="train"),
    "AmazonReviewDataset": partial(lines, name="train.csv", row=CSV, usage="train"),
    "CLUEDataset": partial(files, name="train.json", row=CLUE),
    "CMUArcticDataset": arctic,
    "CSVDataset": partial(files, name="rows.csv", row="1,2", column_defaults=[0, 0], column_names=["x", "y"]),
    "Caltech101Dataset": caltech101,
    "Caltech256Dataset": classes,
    "CelebADataset": celeba,
    "Cifar100Dataset": partial(cifar, name="train.bin", rows=50_000, labels=(1, 2)),
    "Cifar10Dataset": partial(cifar, name="data_batch_1.bin", rows=10_000, labels=(1,)),
    "CityscapesDataset": cityscapes,
    "CoNLL2000Dataset": partial(lines, name="train.txt", row="word NN B-NP\n", usage="train"),
    "CocoDataset": coco,
    "DBpediaDataset": partial(lines, name="train.csv", row=CSV, usage="train"),
    "DIV2KDataset": div2k,
    "EMnistDataset": partial(
        idx,
        images="emnist-mnist-train-images-idx3-ubyte",
        labels="emnist-mnist-train-labels-idx1-ubyte",
        name="mnist",
        usage="train",
    ),
    "EnWik9Dataset": partial(lines, name="enwik9", row="a line"),
    "FakeImageDataset": lambda _folder: {"num_images": ROWS, "image_size": (8, 8, 3)},
    "FashionMnistDataset": MNIST,
    "FlickrDataset": flickr,
    "Flowers102Dataset": flowers,
    "Food101Dataset": food,
    "GTZANDataset": gtzan,
    "GeneratorDataset": lambda _folder: {"source": Rows(), "column_names": ["x"]},
    "IMDBDataset": imdb,
    "IWSLT2016Dataset": partial(iwslt, inside=("texts", "de", "en", "de-en")),
    "IWSLT2017Dataset": partial(iwslt, inside=("texts", "DeEnItNlRo", "DeEnItNlRo", "DeEnItNlRo-DeEnItNlRo")),
    "ImageFolderDataset": classes,
    "KITTIDataset": kitti,
    "KMnistDataset": MNIST,
    "LFWDataset": lfw,
    "LJSpeechDataset": ljspeech,
    "LSUNDataset": lsun,
    "LibriTTSDataset": libri,
    "ManifestDataset": manifest,
    "MindDataset": mind,
    "MnistDataset": MNIST,
    "Multi30kDataset": multi30k,
    "NumpySlicesDataset": lambda _folder: {"data": np.arange(ROWS), "column_names": ["x"]},
    "OmniglotDataset": omniglot,
    "PaddedDataset": lambda _folder: {"padded_samples": [{"x": np.zeros(3, np.float32)}] * ROWS},
    "PennTreebankDataset": partial(lines, name="ptb.train.txt", row="a line", usage="train"),
    "PhotoTourDataset": photo_tour,
    "Places365Dataset": places,
    "QMnistDataset": partial(
        idx, images="qmnist-train-images-idx3-ubyte", labels="qmnist-train-labels-idx2-int", wide=8, usage="train"
    ),
    "RandomDataset": random,
    "RenderedSST2Dataset": rendered,
    "SBDataset": boundaries,
    "SBUDataset": sbu,
    "SQuADDataset": squad,
    "SST2Dataset": sst2,
    "STL10Dataset": stl10,
    "SUN397Dataset": sun,
    "SVHNDataset": svhn,
    "SemeionDataset": partial(lines, name="semeion.data", row="0.0 1.0 " * 128 + "1 0 0 0 0 0 0 0 0 0 "),
    "SogouNewsDataset": partial(lines, name="train.csv", row=CSV, usage="train"),
    "SpeechCommandsDataset": commands,
    "TFRecordDataset": tf_record,
    "TedliumDataset": tedlium,
    "TextFileDataset": partial(files, name="rows.txt", row="a line"),
    "UDPOSDataset": partial(lines, name="en-ud-tag.v2.train.txt", row="word\tNOUN\tNN\n", usage="train"),
    "USPSDataset": partial(
        lines, name="usps", row="1 " + " ".join(f"{at}:0.5" for at in range(1, 257)) + " ", usage="train"
    ),
    "VOCDataset": voc,
    "WIDERFaceDataset": wider,
    "WikiTextDataset": partial(lines, name="wiki.train.tokens", row="a line", usage="train"),
    "YahooAnswersDataset": partial(lines, name="train.csv", row='"1","a","b","c"', usage="train"),
    "YelpReviewDataset": partial(lines, name="train.csv", row='"1","a text"', usage="train"),
    "YesNoDataset": yes_no,
}
ELSEWHERE = {"OBSMindDataset"}  # reads from a cloud's object storage
