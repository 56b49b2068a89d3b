// activity_buffers.cpp: fills buffers and writes their records to the log.
#include "simulated/activity_buffers.h"

#include <algorithm>

namespace marey::simulated {
namespace {

DeviceWork to_work(const WorkRecord& record, std::uint32_t site, const ClockRelation& relation) {
    const Job& job = record.job;
    DeviceWork work;
    work.kind = job.kind;
    work.site = site;
    work.device = {kType, job.device};
    work.stream = job.stream;
    work.context = static_cast<std::uint32_t>(job.device) + 1;
    work.correlation = job.correlation;
    work.start = relation.to_ticks(record.start_ns);
    work.end = std::max(relation.to_ticks(record.end_ns), work.start);
    work.bytes = job.bytes;
    work.kernel = {{64, 1, 1}, {128, 1, 1}, 32, 0, 4096, job.graph_node};
    return work;
}

}  // namespace

bool ActivityBuffers::add(Record record, const Settings& settings) {
    if (static_cast<double>(current_.size()) >= settings.buffer_records) {
        if (settings.hold_buffers != 0 && static_cast<double>(full_.size() + 1) >= settings.buffers) {
            ++lost_;
            ++unreported_;
            return false;
        }
        full_.push_back(std::exchange(current_, {}));
    }
    current_.push_back(std::move(record));
    return true;
}

void ActivityBuffers::deliver_records(bool everything, DeviceLog& log, const ClockRelation& relation,
                                      const Settings& settings) {
    if (everything && !current_.empty()) full_.push_back(std::exchange(current_, {}));
    for (; !full_.empty(); full_.pop_front()) {
        Buffer& buffer = full_.front();
        if (settings.shuffle != 0) std::shuffle(buffer.begin(), buffer.end(), random_);
        for (const Record& record : buffer) write(record, log, relation);
    }
    if (unreported_ != 0) log.count_lost(std::exchange(unreported_, 0));
}

void ActivityBuffers::write(const Record& record, DeviceLog& log, const ClockRelation& relation) {
    if (const auto* const work = std::get_if<WorkRecord>(&record)) {
        log.write(to_work(*work, site_of(work->job.kind, work->job.name), relation));
    } else if (const auto* const call = std::get_if<CallRecord>(&record)) {
        DeviceCall made;
        made.site = DeviceLog::call_site(call->name, call->is_driver);
        made.os_tid = call->os_tid;
        made.correlation = call->correlation;
        made.start = call->start;
        made.end = call->end;
        made.result = call->result;
        made.device_type = kType;
        log.write(made);
    } else if (const auto* const memory = std::get_if<MemoryRecord>(&record)) {
        log.write(memory->report, memory->ticks);
    }
}

std::uint32_t ActivityBuffers::site_of(DeviceWorkKind kind, const std::string& name) {
    const auto [place, is_new] = sites_.try_emplace({kind, name}, 0);
    if (place->second == 0) place->second = DeviceLog::work_site(kind, name);
    return place->second;
}

void ActivityBuffers::forget() {
    current_.clear();
    full_.clear();
    unreported_ = 0;
}

}  // namespace marey::simulated
