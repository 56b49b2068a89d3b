#!/usr/bin/env bash
# run_gpu.sh: `marey run --gpu`: the settings for the program, and programs that load Marey with CUDA. Needs MAREY_BIN.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH

check "run --gpu" 0 ',devices=cuda(,|$)' "$marey" run -q --gpu -- sh -c 'echo "$MAREY"'
check "run --gpu=NAME" 0 ',devices=my\\,device(,|$)' "$marey" run -q --gpu=my,device -- sh -c 'echo "$MAREY"'
check "run without" 0 'out=' "$marey" run -q -- sh -c 'echo "$MAREY"'
"$marey" run -q -- sh -c 'echo "$MAREY"' 2>&1 | grep -q 'devices=' && fail "run without --gpu requests no device"
check "run --gpu with a wrong name" 2 "^marey: run: --gpu: invalid device name 'a\|b'" "$marey" run --gpu='a|b' -- true

example=${MAREY_BUILD_DIR:-}/examples/hello
if [ -x "$example" ] && [ "$("$marey" doctor | grep -c '^off *cuda')" = 1 ]; then
    check "a program runs without a GPU" 0 "marey: .*'cuda'" "$marey" run --gpu -o no.marey -- "$example"
fi

check "CUDA finds Marey" 0 '^/.*/libmarey\.so[^ ]*$' "$marey" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "an empty variable counts as unset" 0 '^/.*/libmarey\.so' \
    env CUDA_INJECTION64_PATH= "$marey" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "only on request" 0 '^none$' "$marey" run -q -- sh -c 'echo "${CUDA_INJECTION64_PATH-none}"'
check "not for another device" 0 '^none$' "$marey" run -q --gpu=simulated -- sh -c 'echo "${CUDA_INJECTION64_PATH-none}"'
other=(env CUDA_INJECTION64_PATH=/opt/other/libother.so "$marey" run -q --gpu)
check "another tool stays" 0 '^/opt/other/libother\.so$' "${other[@]}" -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "a notice about the other tool" 0 '^marey: --gpu: CUDA loads another tool.*: CUDA_INJECTION64_PATH is /opt/other/libother\.so' \
    "${other[@]}" -- true
ln -s "$("$marey" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"' 2>/dev/null)" own.so
"$marey" run -q --gpu -- true 2>&1 | grep 'another tool' && fail "Marey does not count as another tool"
env CUDA_INJECTION64_PATH="$PWD/own.so" NVTX_INJECTION64_PATH="$PWD/own.so" "$marey" run -q --gpu --nvtx -- true 2>&1 |
    grep 'another tool' && fail "Marey by another path does not count as another tool"
check "activities" 0 ',devices=cuda,device_activities=default\|waits(,|$)' \
    "$marey" run -q --gpu --gpu-activities default,waits -- sh -c 'echo "$MAREY"'
check "no such activity" 2 "^marey: run: --gpu-activities: unknown device activity 'naps'; expected kernels," \
    "$marey" run --gpu --gpu-activities kernels,naps -- true
check "activities without a device" 2 '^marey: run: --gpu-activities needs --gpu' "$marey" run --gpu-activities waits -- true
if "$marey" doctor | grep -q '^off *cuda *NVIDIA'; then
    check "the missing driver" 0 "nothing was recorded: .*\. GPU: .*NVIDIA" "$marey" run --gpu -- true
fi
check "a program without CUDA" 0 'nothing was recorded: .* are not linked to Marey, used neither CUDA nor NVTX' \
    "$marey" run --gpu -- true

# Imitates CUDA's driver at its initialisation, in a program that is not linked to Marey.
driver='import ctypes, os; print("initialised:", ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection())'
if command -v python3 >/dev/null && [ -z "${MAREY_TEST_SANITIZER:-}" ]; then  # a sanitizer's library must come first
    check "a program that is not linked to Marey" 0 '^initialised: 1$' \
        "$marey" run --gpu -o plain.marey -- python3 -I -S -c "$driver"
    check "has a capture" 0 '^command +.*python3 -I -S' "$marey" info plain.marey
    check "a program with recording switched off" 0 '^initialised: 1$' \
        "$marey" run --gpu -o none.marey -- env MAREY= python3 -I -S -c "$driver"
    [ -e none.marey ] && fail "it has no capture" "$(ls)"
fi

exit $((failures > 0))
