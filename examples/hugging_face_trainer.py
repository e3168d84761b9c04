"""A tiny BERT, trained by Hugging Face's Trainer: `pipeprof collect -- python examples/hugging_face_trainer.py`.

Each text is made into numbers when it is fetched, character by character in Python: that is what the training waits
for. With `--workers 2` two processes do it.
"""

from __future__ import annotations

import argparse
import string
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

LENGTH = 96
WORDS = ["the", "slow", "stage", "of", "a", "loader", "is", "named", "with", "its", "line"]


class Texts(torch.utils.data.Dataset):
    """Texts with a label, and the numbers of their characters."""

    def __init__(self, count: int, cost: int) -> None:
        self.texts = [" ".join(WORDS[(number * k) % len(WORDS)] for k in range(1, 60)) for number in range(count)]
        self.cost = cost

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        for _ in range(self.cost):
            numbers = [1 + string.ascii_lowercase.find(letter) for letter in self.texts[index]]
        return {"input_ids": torch.tensor(numbers[:LENGTH]), "labels": torch.tensor(index % 2)}


def main() -> None:
    """Train for a number of steps, each of two accumulated batches."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--cost", type=int, default=40, help="how often a text is gone through")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=32, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=LENGTH,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=options.steps,
            dataloader_num_workers=options.workers, report_to=[], save_strategy="no", logging_steps=20,
            disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        Trainer(BertForSequenceClassification(config), arguments, train_dataset=Texts(400, options.cost)).train()


if __name__ == "__main__":
    main()
