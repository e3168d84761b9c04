#!/usr/bin/env bash
# Runs the end-to-end tests on the installed wheel: a new environment, and no source tree in sight.
#   on_wheel.sh VENV DIST     VENV: environment with the test tools and MindSpore; DIST: folder with the built wheel
set -euo pipefail
venv=$1
dist=$2
here=$(cd "$(dirname "$0")" && pwd)
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

# A copy of the environment without the editable install would cost 3 GB: a second one that sees the first one's
# packages, with the wheel in front of them, is the same to the tests.
"$venv/bin/python" -m venv "$away/venv"
site=$("$away/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/zz-test-tools.pth"
"$away/venv/bin/python" -m pip install --quiet --no-deps --force-reinstall "$dist"/pipeprof-*.whl
for tool in msrun; do
  printf '#!/bin/sh\nexec "%s" -c "from mindspore.parallel.cluster.run import main; main()" "$@"\n' \
    "$away/venv/bin/python" > "$away/venv/bin/$tool"
  chmod +x "$away/venv/bin/$tool"
done

# The wheel is held to what an installation can break: how commands are started, ranks (of one mode), the verbs. How long
# trainings take does not depend on it.
cp -r "$here" "$away/e2e"
# What they share with the other tests lies beside their folder, where there is no pipeprof.
helpers=$(dirname "$here")
only=(test_launch_forms.py test_collect_errors.py test_ranks.py test_sources.py test_ab.py)
cd "$away"
found=$("$away/venv/bin/python" -c 'import pipeprof; print(pipeprof.__file__)')
case "$found" in
  "$away"/*) ;;
  *) echo "not the wheel: $found"; exit 1 ;;
esac
on_wheel() {
  PATH="$away/venv/bin:$PATH" PIPEPROF_E2E_PYTHON="$away/venv/bin/python" \
    "$away/venv/bin/python" -m pytest "${only[@]/#/$away/e2e/}" -p no:cacheprovider \
    --randomly-seed=1 --rootdir "$away" -o "markers=mindspore: real training
alone: nothing beside it
measures: compares times
slow: long" -o "pythonpath=$helpers" -o timeout=1800 -k "jit or not test_ranks" "$@"
}
on_wheel -m "not (slow or measures or alone)" -n auto --maxprocesses 2 --dist loadfile
on_wheel -m "alone and not (slow or measures)"
