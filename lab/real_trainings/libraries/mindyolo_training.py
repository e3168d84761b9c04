"""A small detector trained by mindyolo: its data set (Python, OpenCV), its loader, its step function, its trainer."""

from __future__ import annotations

import mindspore as ms
import written
from mindspore import nn, ops
from mindyolo.data import COCODataset, create_loader
from mindyolo.utils.callback import BaseCallback
from mindyolo.utils.train_step_factory import create_train_step_fn, get_gradreducer, get_loss_scaler
from mindyolo.utils.trainer_factory import create_trainer
from truth import EPOCHS, mark, tell

BATCH = 4
PICTURES = 40
PIXELS = 128
TRANSFORMS = [
    {"func_name": "mosaic", "prob": 1.0},
    {"func_name": "resample_segments"},
    {"func_name": "random_perspective", "prob": 1.0, "degrees": 0.0, "translate": 0.1, "scale": 0.5, "shear": 0.0},
    {"func_name": "hsv_augment", "prob": 1.0, "hgain": 0.015, "sgain": 0.7, "vgain": 0.4},
    {"func_name": "label_norm", "xyxy2xywh_": True},
    {"func_name": "fliplr", "prob": 0.5},
    {"func_name": "label_pad", "padding_size": 16, "padding_value": -1},
    {"func_name": "image_norm", "scale": 255.0},
    {"func_name": "image_transpose", "bgr2rgb": True, "hwc2chw": True},
]


class Detector(nn.Cell):
    """One box for each picture."""

    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(3, 8, 3, 4), nn.ReLU(), nn.Conv2d(8, 16, 3, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Dense(16, 4),
        )  # fmt: skip

    def construct(self, pictures):
        return self.layers(pictures)


class FirstBox(nn.Cell):
    """Distance to the first labelled box; called as mindyolo calls its losses."""

    def construct(self, predicted, labels, _pictures):
        loss = ops.mse_loss(predicted, labels[:, 0, 2:6])
        return loss, loss.expand_dims(0)  # the terms of the loss


class Marks(BaseCallback):
    def on_train_step_begin(self, run_context):
        mark("train", run_context.cur_epoch_index - 1)


def loader(path):
    rows = COCODataset(
        dataset_path=written.boxes(path / "found", PICTURES, 160), img_size=PIXELS, transforms_dict=TRANSFORMS,
        is_training=True, augment=True, batch_size=BATCH, num_cls=2,
    )  # fmt: skip
    return create_loader(
        rows, rows.train_collate_fn, rows.column_names_getitem, rows.column_names_collate, BATCH, epoch_size=EPOCHS,
        num_parallel_workers=2,
    )  # fmt: skip


def main(path):
    ms.set_context(mode=ms.GRAPH_MODE)
    network, loss = Detector(), FirstBox()
    optimizer = nn.Momentum(network.trainable_params(), 0.01, 0.9)
    scaler, reducer = get_loss_scaler("none"), get_gradreducer(False, optimizer.parameters)
    step = create_train_step_fn(
        "detect", network, loss, optimizer, loss_ratio=1.0, scaler=scaler, reducer=reducer, ms_jit=True
    )
    trainer = create_trainer(
        "detector", step, scaler, network, loss, None, optimizer, loader(path), PICTURES // BATCH, [Marks()], reducer,
        data_sink=False, profiler=None,
    )  # fmt: skip
    trainer.train(EPOCHS, main_device=True, log_interval=5, loss_item_name=["loss"], save_dir=str(path), rank_size=1)


if __name__ == "__main__":
    with written.folder() as path:
        main(path)
    tell()
