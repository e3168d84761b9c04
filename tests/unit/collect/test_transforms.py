"""The transforms that a dataset composes: each is a stage, whose time is not the dataset's."""

import _thread

import pytest


class Compose:
    __module__ = "torchvision.transforms.transforms"

    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, row):
        for transform in self.transforms:
            row = transform(row)
        return row


class Rows:
    def __init__(self, transform):
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(index)


class Subset:
    def __init__(self, dataset):
        self.dataset = dataset

    def __getitem__(self, index):
        return self.dataset[index]


class Loader:
    num_workers, prefetch_factor, batch_size, auto_collation = 0, None, 2, True
    index_sampler = batch_sampler = collate_fn = list

    def __init__(self, dataset):
        self.dataset = dataset


class Fetcher:
    auto_collation, collate_fn = True, list

    def __init__(self, dataset):
        self.dataset, self.collate_fn = dataset, list

    def fetch(self, indices):
        return self.collate_fn([self.dataset[index] for index in indices])


def double(row):
    return 2 * row


def add(row):
    return row + 1


@pytest.fixture
def fetch(probe, rec, monkeypatch):
    """`fetch(dataset)`: a function that fetches rows of it, hooked; the feed; how often a stage is timed."""
    monkeypatch.setattr(probe.dataset, "_prepare", lambda: None)

    def make(dataset, every=1):
        module, fetcher = probe.dataloader, Fetcher(dataset)
        feed = module._of_fetchers[fetcher] = probe.loaders.Feed(module._describe(module.MINDSPORE, Loader(dataset)))
        for cell in feed.cells.values():
            cell.every = every
        hooked = module._made(Fetcher.fetch, "dataset", module._Rows)
        return lambda indices: hooked(fetcher, indices), feed

    return make


def stages(feed):
    return [(stage.kind, stage.facts["name"]) for stage in feed.description.stages]


def test_transforms_are_stages_in_their_order_wherever_the_dataset_has_them(fetch):
    _, feed = fetch(Subset(Rows(Compose(double, Compose(add)))))
    assert stages(feed) == [
        ("Collate", "list"), ("Transform", "add"), ("Transform", "double"), ("Dataset", "Subset"), ("Sampler", "list"),
    ]  # fmt: skip


def test_a_sampler_of_the_users_is_named_and_not_what_makes_batches_of_its_numbers(probe):
    order, library = probe.dataloader._order, {"__module__": "torch.utils.data.sampler"}
    batched, random = type("BatchSampler", (), dict(library))(), type("RandomSampler", (), dict(library))()
    batched.sampler = random
    assert order(batched) is batched
    batched.sampler = own = type("WeightedSampler", (), {"__module__": "train"})()
    assert order(batched) is own
    own.sampler = random
    assert order(own) is own


def test_the_time_of_a_transform_is_its_own_and_not_the_datasets(fetch):
    composed = Compose(double, add)
    before = composed.transforms
    take, feed = fetch(Rows(composed))
    assert take([1, 2]) == [3, 5]
    assert composed.transforms is before
    told = {cell.node: cell.take() for cell in feed.cells.values()}
    assert {node: (told[node]["calls"], told[node]["timed"]) for node in (1, 2, 3)} == dict.fromkeys((1, 2, 3), (2, 2))
    assert told[1]["wall"] == told[2]["wall"] == 2 * 1000  # the clock: a microsecond for each look at it
    assert told[3]["wall"] == 2 * (5000 - 2000)


def test_rows_that_are_not_timed_are_counted_for_each_transform_and_those_of_the_programs_own_are_none(fetch):
    take, feed = fetch(Rows(Compose(double, add)), every=3)
    for _ in range(4):
        take([1, 2])
    told = {cell.node: cell.take() for cell in feed.cells.values()}
    assert [(told[node]["calls"], told[node]["timed"]) for node in (1, 2, 3)] == [(8, 4)] * 3
    own = type("Compose", (Compose,), {"__module__": "train"})(double)
    take, feed = fetch(Rows(own))
    assert [kind for kind, _ in stages(feed)] == ["Collate", "Dataset", "Sampler"]
    assert take([1, 2]) == [2, 4]


def test_an_error_leaves_all_as_it_was(fetch):
    composed = Compose(double, lambda row: 1 // (row - 2))
    before, take = composed.transforms, fetch(Rows(composed))[0]
    with pytest.raises(ZeroDivisionError):
        take([5, 1])
    assert composed.transforms is before
    assert take([2, 3]) == [0, 0]


def test_another_thread_that_transforms_meanwhile_is_not_counted(fetch):
    is_done, given = _thread.allocate_lock(), []

    def elsewhere(row):
        given.append(row)
        if len(given) == 1:
            is_done.acquire()
            _thread.start_new_thread(lambda: composed(3) and is_done.release(), ())
            is_done.acquire()
        return row

    composed = Compose(double, elsewhere)
    take, feed = fetch(Rows(composed))
    assert take([60]) == [120]
    assert given == [120, 6]
    figures = feed.cells["Transform", 0].take()
    assert (figures["timed"], figures["wall"]) == (1, 1000)
