#!/usr/bin/env bash
# ranks.sh: `marey ranks` with traces of two ranks in the form that PyTorch writes. Needs MAREY_BIN.
. "$(dirname "$0")/check.bash"

check "help" 0 'Usage: marey ranks' "$marey" ranks --help
check "no file" 2 '^marey: ranks: FILE is required' "$marey" ranks
check "a missing file" 2 '^marey: missing\.marey: No such file' \
    "$marey" ranks missing.marey

# Two steps of 10 ms; rank 1 computes 2 ms longer. The kernels are linked to the calls that launched them.
rank() {  # rank RANK COMPUTE_US
    local events="" step start launch
    for step in 0 1; do
        start=$((step * 10000))
        launch=$((start + 1000 + $2))
        events+="{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#$step\",\"pid\":$((100 + $1)),\"tid\":1,\"ts\":$start,\"dur\":10000},
{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":$((100 + $1)),\"tid\":1,\"ts\":$((start + 100)),\"dur\":100,\"args\":{\"Collective name\":\"allreduce\",\"Process Group Name\":\"0\",\"Seq\":$((7 + step))}},
{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":$((100 + $1)),\"tid\":1,\"ts\":$((start + 120)),\"dur\":10,\"args\":{\"correlation\":$((10 + step))}},
{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"sgemm\",\"pid\":0,\"tid\":7,\"ts\":$((start + 1000)),\"dur\":$2,\"args\":{\"device\":0,\"stream\":7,\"correlation\":$((20 + step))}},
{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\",\"pid\":0,\"tid\":9,\"ts\":$launch,\"dur\":$((start + 9900 - launch)),\"args\":{\"device\":0,\"stream\":9,\"correlation\":$((10 + step))}},
"
    done
    printf '{"schemaVersion":1,"host_name":"node%d","distributedInfo":{"backend":"nccl","rank":%d,"world_size":2},"traceEvents":[%s]}\n' \
        "$3" "$1" "${events%,*}" >"rank$1.json"
}
rank 0 5000 0
rank 1 7000 0
check "one rank" 2 '^marey: ranks: at least two ranks are needed, got 1' "$marey" ranks rank0.json
check "the ranks" 0 '^ +1  node0 +2 +10\.0 ms +7\.00 ms +0 ns +1\.90 ms +1\.90 ms +0 ns +2 +2\.00 ms' "$marey" ranks rank0.json rank1.json
check "waiting" 0 '^ +0  node0 +2 +10\.0 ms +5\.00 ms +0 ns +3\.90 ms +3\.90 ms +2\.00 ms +0 +0 ns' "$marey" ranks rank0.json rank1.json
check "the critical path" 0 '^8\.10 ms .* +1 +1  sgemm' "$marey" ranks rank0.json rank1.json
check "the estimate" 0 'If rank 1 were as fast as the median, a step would take 8\.00 ms instead of 10\.0 ms' "$marey" ranks rank0.json rank1.json
check "the finding" 0 '^slow_kernels: rank 1 on node0 keeps the others waiting for 20% of the time, in 2 of 2 steps: its kernels' "$marey" ranks rank0.json rank1.json
check "one host" 0 '^clock +one host' "$marey" ranks rank0.json rank1.json
check "csv" 0 '^rank,step_compute_ns$' "$marey" ranks --csv --columns rank,step_compute_ns rank0.json rank1.json
check "json" 0 '"rule": "slow_kernels"' "$marey" ranks --json rank0.json rank1.json
check "other steps" 0 '^collectives +2 matched' "$marey" ranks --step-name 'nothing' rank0.json rank1.json
echo broken >broken.marey
check "a file that cannot be read is left out" 0 '^marey: ranks: left out broken\.marey: ' "$marey" ranks rank0.json broken.marey rank1.json
check "the same rank twice" 0 '^marey: ranks: left out rank1\.json: rank 1 is in two' "$marey" ranks rank0.json rank1.json rank1.json
check "a folder without captures" 2 '^marey: ranks: \./empty: no captures' bash -c "mkdir -p empty && '$marey' ranks ./empty"

rank 1 7000 1
check "two hosts" 0 '^clock +2 hosts, reference node.: worst \+-.* \(node.: 2 collectives\)' "$marey" ranks rank0.json rank1.json

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
