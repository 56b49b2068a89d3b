// work_meter.cpp: which progress the operations of a thread count into.
#include "base/work_meter.h"

#include <utility>

namespace marey {
namespace {

thread_local WorkProgress* watched = nullptr;

}  // namespace

WatchedWork::WatchedWork(WorkProgress& progress) noexcept {
    watched = &progress;
}

WatchedWork::~WatchedWork() {
    watched = nullptr;
}

WorkMeter::WorkMeter(std::uint64_t total) noexcept : progress_(std::exchange(watched, nullptr)) {
    if (progress_ == nullptr) return;
    progress_->done = 0;
    progress_->total = total;
}

WorkMeter::~WorkMeter() {
    if (progress_ == nullptr) return;
    progress_->total = 0;
    watched = progress_;
}

}  // namespace marey
