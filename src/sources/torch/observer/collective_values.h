// collective_values.h: the values of a collective's range: its group, its ranks, its sizes.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/value.h>

namespace marey::torch {

/// Read from the calling thread's state at the start of such a range. The keys are those of PyTorch's traces.
class CollectiveValues {
  public:
    CollectiveValues() {
        const auto* const info = static_cast<const ::torch::ParamCommsDebugInfo*>(
            c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
        if (info == nullptr) return;
        read(*info);
    }
    CollectiveValues(const CollectiveValues&) = delete;
    CollectiveValues& operator=(const CollectiveValues&) = delete;
    std::span<const KeyedValue> values() const noexcept { return values_; }

  private:
    template <class Info>
    void read(const Info& info) {
        name_ = info.getCollectiveName();
        group_ = info.getProcessGroupName();
        description_ = info.getProcessGroupDesc();
        values_ = {{"Collective name", std::string_view(name_)},
                   {"dtype", std::string_view(c10::toString(info.getDType()))},
                   {"In msg nelems", info.getInMessageNelems()},
                   {"Out msg nelems", info.getOutMessageNelems()},
                   {"Group size", info.getWorldSize()},
                   {"In split size", list(info.getInputSplitSizes(), in_)},
                   {"Out split size", list(info.getOutputSplitSizes(), out_)},
                   {"Process Group Name", std::string_view(group_)},
                   {"Process Group Description", std::string_view(description_)},
                   {"Process Group Ranks", list(info.getGroupRanks(), ranks_)},
                   {"Rank", info.getRank()},
                   {"Global rank start", info.getGlobalRankStart()},
                   {"Global rank stride", info.getGlobalRankStride()}};
        if constexpr (requires { info.isAsynchronizedOp(); })
            values_.push_back({"Is asynchronized op", info.isAsynchronizedOp()});
        if constexpr (requires { info.getSequenceNumber(); })
            values_.push_back({"Seq", info.getSequenceNumber()});
    }
    static Value list(const std::vector<std::int64_t>& numbers, std::vector<Value>& place) {
        place.assign(numbers.begin(), numbers.end());
        return std::span<const Value>(place);
    }

    std::string name_, group_, description_;
    std::vector<Value> in_, out_, ranks_;
    std::vector<KeyedValue> values_;
};

}  // namespace marey::torch
