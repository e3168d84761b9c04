"""What NumPy 2 would break in MindSpore 2.10."""

import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor

ones = Tensor(np.ones(3, np.float32))
rows = ds.GeneratorDataset([(np.ones(2, np.float32), label) for label in range(3)], ["data", "label"], shuffle=False)
labels = [int(label.asnumpy()) for _, label in rows.create_tuple_iterator(num_epochs=1)]
found = [*(ones / 1.0).asnumpy(), *(ones * 0.5).asnumpy(), *Parameter(ones).value().copy().asnumpy(), *labels]
print(np.__version__, *map(float, found))
