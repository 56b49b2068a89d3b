#!/usr/bin/env bash
# run_gpu.sh: `kymo run --gpu`: what it passes on, and programs that load Kymo with CUDA. Needs KYMO_BIN.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH

check "run --gpu" 0 ',devices=cuda(,|$)' "$kymo" run -q --gpu -- sh -c 'echo "$KYMO"'
check "run --gpu=NAME" 0 ',devices=my\\,device(,|$)' "$kymo" run -q --gpu=my,device -- sh -c 'echo "$KYMO"'
check "run without" 0 'out=' "$kymo" run -q -- sh -c 'echo "$KYMO"'
"$kymo" run -q -- sh -c 'echo "$KYMO"' 2>&1 | grep -q 'devices=' && fail "run without --gpu asks for no device"
check "run --gpu with a wrong name" 2 "^kymo: run: --gpu: 'a\|b' is no name" "$kymo" run --gpu='a|b' -- true

example=${KYMO_BUILD_DIR:-}/examples/hello
if [ -x "$example" ] && [ "$("$kymo" doctor | grep -c '^off *cuda')" = 1 ]; then
    check "a program runs where there is no GPU" 0 "kymo: .*'cuda'" "$kymo" run --gpu -o no.kymo -- "$example"
fi

check "CUDA finds Kymo" 0 '^/.*/libkymo\.so[^ ]*$' "$kymo" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "an empty variable is none" 0 '^/.*/libkymo\.so' \
    env CUDA_INJECTION64_PATH= "$kymo" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "only when asked" 0 '^none$' "$kymo" run -q -- sh -c 'echo "${CUDA_INJECTION64_PATH-none}"'
check "not for another device" 0 '^none$' "$kymo" run -q --gpu=simulated -- sh -c 'echo "${CUDA_INJECTION64_PATH-none}"'
other=(env CUDA_INJECTION64_PATH=/opt/other/libother.so "$kymo" run -q --gpu)
check "another tool stays" 0 '^/opt/other/libother\.so$' "${other[@]}" -- sh -c 'echo "$CUDA_INJECTION64_PATH"'
check "and that is said" 0 '^kymo: --gpu: CUDA loads another tool.*: CUDA_INJECTION64_PATH is /opt/other/libother\.so' \
    "${other[@]}" -- true
ln -s "$("$kymo" run -q --gpu -- sh -c 'echo "$CUDA_INJECTION64_PATH"' 2>/dev/null)" own.so
"$kymo" run -q --gpu -- true 2>&1 | grep 'another tool' && fail "Kymo is no other tool"
env CUDA_INJECTION64_PATH="$PWD/own.so" NVTX_INJECTION64_PATH="$PWD/own.so" "$kymo" run -q --gpu --nvtx -- true 2>&1 |
    grep 'another tool' && fail "Kymo by another path is no other tool"
check "activities" 0 ',devices=cuda,device_activities=default\|waits(,|$)' \
    "$kymo" run -q --gpu --gpu-activities default,waits -- sh -c 'echo "$KYMO"'
check "no such activity" 2 "^kymo: run: --gpu-activities: there is no activity of devices 'naps'; known: kernels," \
    "$kymo" run --gpu --gpu-activities kernels,naps -- true
check "activities of no device" 2 '^kymo: run: --gpu-activities needs --gpu' "$kymo" run --gpu-activities waits -- true
if "$kymo" doctor | grep -q '^off *cuda *NVIDIA'; then
    check "what is missing" 0 "nothing was recorded: .*\. Of the GPU: NVIDIA's driver" "$kymo" run --gpu -- true
fi
check "a program without CUDA" 0 'nothing was recorded: .* is not linked to Kymo, used neither CUDA nor NVTX' \
    "$kymo" run --gpu -- true

# What CUDA's driver does when it is initialised, by a program that does not know Kymo.
driver='import ctypes, os; print("initialised:", ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection())'
if command -v python3 >/dev/null; then
    check "a program that does not know Kymo" 0 '^initialised: 1$' \
        "$kymo" run --gpu -o plain.kymo -- python3 -I -S -c "$driver"
    check "has a capture" 0 '^command +.*python3 -I -S' "$kymo" info plain.kymo
    check "a program that is not to be recorded" 0 '^initialised: 1$' \
        "$kymo" run --gpu -o none.kymo -- env KYMO= python3 -I -S -c "$driver"
    [ -e none.kymo ] && fail "it has none" "$(ls)"
fi

exit $((failures > 0))
