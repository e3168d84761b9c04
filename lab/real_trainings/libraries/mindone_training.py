"""A small classifier of sentences under mindone's Trainer; a tokenizer reads them while they are fetched.

The network is our own: mindone's need an Embedding kernel that MindSpore has not for the CPU.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
import written
from mindone.transformers.trainer import Trainer
from mindone.transformers.training_args import TrainingArguments
from mindspore import nn
from transformers import BertTokenizer, TrainerCallback
from truth import EPOCHS, mark, tell

BATCH = 8
LONGEST = 32
SENTENCES = 160
WORDS = [f"word{number}" for number in range(200)]


class Sentences:
    """Random sentences with a label, tokenized when they are asked for."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __len__(self):
        return SENTENCES

    def __getitem__(self, index):
        chance = np.random.default_rng(int(index))
        text = " ".join(chance.choice(WORDS, 20))
        found = self.tokenizer(text, padding="max_length", truncation=True, max_length=LONGEST)
        return {
            "input_ids": np.array(found["input_ids"], np.int32),
            "attention_mask": np.array(found["attention_mask"], np.int32),
            "labels": np.int32(index % 2),
        }


class Classifier(nn.Cell):
    """Mean of the words' vectors, and one layer; gives its loss first, as the networks of mindone do."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(256, 64)
        self.decide = nn.SequentialCell(nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 2))
        self.loss = nn.CrossEntropyLoss()

    def construct(self, input_ids, attention_mask, labels):
        seen = attention_mask.astype(ms.float32).expand_dims(-1)
        logits = self.decide((self.words(input_ids) * seen).mean(1))
        return self.loss(logits, labels), logits


class Marks(TrainerCallback):
    def on_step_begin(self, _args, state, _control, **_more):
        mark("train", int(state.epoch or 0))


def tokenizer(path):
    vocabulary = path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]), encoding="utf-8")
    return BertTokenizer(str(vocabulary))


def main(path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    arguments = TrainingArguments(
        output_dir=str(path / "out"), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH,
        save_strategy="no", logging_steps=10, report_to=[], dataloader_num_workers=1,
        remove_unused_columns=False,
    )  # fmt: skip
    trainer = Trainer(
        model=Classifier(), args=arguments, train_dataset=Sentences(tokenizer(path)),
        callbacks=[Marks()],
    )  # fmt: skip
    trainer.train()


if __name__ == "__main__":
    with written.folder() as path:
        main(path)
    tell()
