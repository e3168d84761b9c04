"""A lint over many things is one test, which lists every offender."""

import inspect


def every(cases, named=str):
    """Turns `check(case, *fixtures)` into a test that calls it with each case, and names all cases that it fails for.

    There has to be a case: a lint over nothing would pass unseen.
    """
    listed = list(cases)
    assert listed, "nothing to check"

    def as_test(check):
        signature = inspect.signature(check)

        def test(**fixtures):
            wrong = []
            for case in listed:
                try:
                    check(case, **fixtures)
                except Exception as problem:  # noqa: BLE001 - named with its case, and the others are looked at
                    wrong.append(f"{named(case)}: {problem or type(problem).__name__}")
            assert not wrong, f"{len(wrong)} of {len(listed)}:\n" + "\n".join(wrong)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        test.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
        return test

    return as_test
