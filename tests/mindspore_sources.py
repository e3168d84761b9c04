"""The classes of MindSpore's datasets that read something."""


def source_classes():
    """Each by its name, without those that others are derived from."""
    import mindspore.dataset as ds

    found = {name: getattr(ds, name) for name in dir(ds)}
    source = ds.engine.datasets.SourceDataset
    return {
        name: made
        for name, made in found.items()
        if isinstance(made, type) and issubclass(made, source) and not made.__module__.endswith("engine.datasets")
    }
