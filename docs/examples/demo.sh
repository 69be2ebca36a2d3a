#!/usr/bin/env bash
# The demo: train.py as it should be, then with its three wrong turns, each under attntrace. demo.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
mkdir -p build/demo

if ! "$python" -c 'import transformers' 2> /dev/null; then
  # The demo trains Transformers models. They go beside the reader's environment, which stays as it is; PyTorch is the reader's.
  beside=${XDG_CACHE_HOME:-$HOME/.cache}/attntrace/demo-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [ ! -e "$beside/complete" ]; then
    echo "demo: that Python has no transformers; putting it into $beside" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --target "$beside" transformers==5.17.0 >&2
    touch "$beside/complete"
  fi
  export PYTHONPATH=$beside${PYTHONPATH:+:$PYTHONPATH}
fi

trace() {
  local report=build/demo/$1.attn
  shift
  echo
  echo "\$ attntrace -- python docs/examples/train.py $*"
  build/attntrace -o "$report" -f -- "$python" docs/examples/train.py "$@"
}
export HF_HUB_OFFLINE=1
trace fused
trace wrong-turns --wrong-turns
