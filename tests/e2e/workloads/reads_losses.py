"""A loop that reads its loss in every step, prints it in every fourth, and reads it in another thread: `reads_losses.py STEPS`."""

from __future__ import annotations

import sys
import threading

import mindspore as ms
import parts

STEPS = int(sys.argv[1])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
trainer = parts.Trainer()
for number, (x, y) in enumerate(parts.rows(STEPS).create_tuple_iterator(num_epochs=1)):
    loss, gradients = trainer.gradients(x, y)
    trainer.optimizer(gradients)
    value = float(loss)  # in every step
    if number % 4 == 0:
        print(loss)  # in every fourth
    thread = threading.Thread(target=loss.asnumpy)
    thread.start()
    thread.join()
