"""Trainings on pictures: CIFAR and MNIST binaries, folders of JPEG files; transforms in C++ and in Python."""

import files
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import transforms, vision

MEAN, DEVIATION = [120.0] * 3, [60.0] * 3
TO_NUMBERS = [vision.Normalize(MEAN, DEVIATION), vision.HWC2CHW()]


def to_class():
    return transforms.TypeCast(np.int32)


def scaled(image):
    return image.astype(np.float32) / 255


def turned(image):
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def whitened(images):
    images = images.astype(np.float32)
    return ((images - images.mean((1, 2, 3), keepdims=True)) / 60).transpose(0, 3, 1, 2)


def noisy(image):
    image = image.astype(np.float32).transpose(2, 0, 1) / 255
    return image + np.random.standard_normal(image.shape).astype(np.float32) * np.float32(0.1)


def cut_out(image):
    """Random squares set to grey, in plain Python."""
    image = np.array(image)
    for _ in range(3):
        top, left = np.random.randint(0, image.shape[0] - 8), np.random.randint(0, image.shape[1] - 8)
        for row in range(top, top + 8):
            for column in range(left, left + 8):
                image[row, column] = 128
    return image


def opened(data):
    """A JPEG decoded, cropped and scaled by PIL."""
    import io

    from PIL import Image

    picture = Image.open(io.BytesIO(data.tobytes())).convert("RGB")
    picture = picture.crop((8, 8, 136, 136)).resize((48, 48))
    return np.asarray(picture, np.float32).transpose(2, 0, 1) / 255


def mixed_up(images, labels, info):
    """Mixup of a batch with itself: soft labels of ten classes."""
    pictures, classes = np.stack(images), np.eye(10, dtype=np.float32)[np.stack(labels)]
    share, order = np.float32(np.random.beta(0.4, 0.4)), np.random.permutation(len(pictures))
    return (
        share * pictures + (1 - share) * pictures[order],
        share * classes + (1 - share) * classes[order],
    )


def cifar(**options):
    return ds.Cifar10Dataset(files.cifar(), usage="train", **options).map(to_class(), ["label"])


def cifar_lambdas():
    return cifar().map([scaled, turned], ["image"], num_parallel_workers=1).batch(64, drop_remainder=True)


def cifar_native(workers=1):
    steps = [vision.RandomCrop(32, 4), vision.RandomHorizontalFlip(), *TO_NUMBERS]
    return cifar().map(steps, ["image"], num_parallel_workers=workers).batch(64, drop_remainder=True)


def cifar_after_batch():
    return cifar().batch(64, drop_remainder=True).map(whitened, ["image"], num_parallel_workers=1)


def cifar_enlarged():
    steps = [vision.Resize((96, 96)), vision.RandomColorAdjust(0.3, 0.3, 0.3), *TO_NUMBERS]
    return cifar().map(steps, ["image"], num_parallel_workers=2).batch(32, drop_remainder=True)


def cifar_cut_out():
    steps = [cut_out, vision.ToTensor()]
    return cifar().map(steps, ["image"], num_parallel_workers=1).batch(32, drop_remainder=True)


def cifar_cut_mix():
    data = ds.Cifar10Dataset(files.cifar(), usage="train").map(transforms.OneHot(10), ["label"])
    data = data.map([vision.RandomHorizontalFlip(), vision.HWC2CHW()], ["image"]).batch(64, drop_remainder=True)
    data = data.map(vision.CutMixBatch(vision.ImageBatchFormat.NCHW, 1.0, 0.5), ["image", "label"])
    return data.map(transforms.TypeCast(np.float32), ["image"]).map(transforms.TypeCast(np.float32), ["label"])


def mnist(**options):
    return ds.MnistDataset(files.mnist(), usage="train", **options).map(to_class(), ["label"])


def mnist_native():
    return mnist().map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], ["image"]).batch(32, drop_remainder=True)


def mnist_noise():
    return mnist().map(noisy, ["image"], num_parallel_workers=2).batch(128, drop_remainder=True)


def mnist_repeated():
    data = mnist(num_samples=4000).shuffle(2000).repeat(3)
    return data.map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], ["image"]).batch(32, drop_remainder=True)


def concatenated():
    """Two data sets one after the other, each with a map of its own."""
    plain = mnist(num_samples=6000).map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], ["image"])
    return plain.concat(mnist(num_samples=6000).map(noisy, ["image"])).batch(60, drop_remainder=True)


def folder(**options):
    return ds.ImageFolderDataset(files.jpegs(), **options).map(to_class(), ["label"])


def jpeg_native(workers=1):
    steps = [vision.RandomCropDecodeResize(64), vision.RandomHorizontalFlip(), *TO_NUMBERS]
    return folder().map(steps, ["image"], num_parallel_workers=workers).batch(32, drop_remainder=True)


def jpeg_python():
    steps = [vision.ToPIL(), vision.RandomResizedCrop(64), vision.RandomHorizontalFlip(), vision.ToTensor()]
    return folder(decode=True).map(steps, ["image"], num_parallel_workers=1).batch(16, drop_remainder=True)


def jpeg_processes():
    options = {"num_parallel_workers": 2, "python_multiprocessing": True}
    return folder().map(opened, ["image"], **options).batch(32, drop_remainder=True)


def jpeg_mixup():
    data = folder(decode=True).map([vision.Resize((48, 48)), *TO_NUMBERS], ["image"], num_parallel_workers=2)
    columns = {"input_columns": ["image", "label"], "output_columns": ["image", "label"]}
    return data.batch(32, drop_remainder=True, per_batch_map=mixed_up, num_parallel_workers=1, **columns)
