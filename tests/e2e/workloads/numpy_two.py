"""`plain`: what NumPy 2 would break in MindSpore 2.10. `dies`: ends as a training with NumPy 2 does."""

import sys

import numpy as np

if sys.argv[1] == "dies":
    np.__version__ = "2.4.6"

import mindspore.dataset as ds
from mindspore import Parameter, Tensor

if sys.argv[1] == "dies":
    raise SystemError("<method '__truediv__' of 'TensorPy' objects> returned a result with an exception set")

ones = Tensor(np.ones(3, np.float32))
rows = ds.GeneratorDataset([(np.ones(2, np.float32), label) for label in range(3)], ["data", "label"], shuffle=False)
labels = [int(label.asnumpy()) for _, label in rows.create_tuple_iterator(num_epochs=1)]
found = [*(ones / 1.0).asnumpy(), *(ones * 0.5).asnumpy(), *Parameter(ones).value().copy().asnumpy(), *labels]
print(np.__version__, *map(float, found))
