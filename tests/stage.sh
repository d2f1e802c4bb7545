#!/bin/sh
# stage.sh NAME BUDGET_SECONDS COMMAND...: run one stage of `make check`, say how
# long it took of its budget, and fail when it takes more.
name=$1 budget=$2
shift 2
echo "== $name (budget ${budget}s)"
start=$(date +%s)
timeout "$budget" "$@"
status=$?
took=$(($(date +%s) - start))
if [ $status -eq 124 ]; then
	echo "== $name: over its budget of ${budget}s" >&2
elif [ $status -ne 0 ]; then
	echo "== $name: failed after ${took}s" >&2
else
	echo "== $name: ok, ${took}s of ${budget}s"
fi
exit $status
