// read_rows.h: maps the rows of a Chrome trace, identified by pid and tid, to threads and lanes.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include <marey/trace.h>

#include "base/text_hash.h"
#include "formats/chrome/event.h"
#include "trace/trace_assembler.h"

namespace marey {

/// A row, as far as it is known.
struct ImportedRow {
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    enum class Kind : std::uint8_t {
        Own,      ///< a thread, or a device stream
        Async,    ///< Marey files: async ranges of the thread `owner`
        Overlap,  ///< Marey files: ranges that overlap others of the row `owner`
        Track,    ///< Marey files: another track of the thread `owner`
    };
    ChromeId pid, tid;
    std::uint32_t process = 0;  ///< index of its process in ImportedRows
    Kind kind = Kind::Own;
    std::uint32_t owner = kNone;
    StringId name = 0;
    bool is_device = false;  ///< its events are device events
    DeviceType device_type = DeviceType::Cuda;
    std::int64_t device = -1;
    std::int64_t stream = -1;
    Row thread = kNoRow;               ///< created on first use, like the lanes
    bool has_own_thread = false;       ///< not shared with its owner
    std::uint32_t lane = kNone;        ///< lane of nested ranges
    std::uint32_t async_lane = kNone;  ///< lane of async ranges
    // The last complete event, to which directly following flow events belong.
    TraceAssembler::RangeId last_range = TraceAssembler::LinkEnd::kNoRange;
    std::int64_t last_start_ns = 0;
};

class ImportedRows {
  public:
    explicit ImportedRows(TraceAssembler& assembler) : assembler_(assembler) {}

    /// The row of (pid, tid); the reference is valid until the next call.
    ImportedRow& row(const ChromeId& pid, const ChromeId& tid) { return rows_[index(pid, tid)]; }
    std::uint32_t index(const ChromeId& pid, const ChromeId& tid) {
        if (last_ < rows_.size() && rows_[last_].pid == pid && rows_[last_].tid == tid) return last_;
        const RowKey key{pid, tid};
        const std::size_t hash = RowHash()(key);
        Cached& cached = cache_[hash % cache_.size()];
        if (cached.index != ImportedRow::kNone && cached.key == key) return last_ = cached.index;
        const auto [place, is_new] = row_of_.try_emplace(key, static_cast<std::uint32_t>(rows_.size()));
        if (is_new) {
            rows_.push_back({.pid = pid, .tid = tid, .process = process_index(pid)});
        }
        cached = {key, place->second};
        return last_ = place->second;
    }
    ImportedRow& at(std::uint32_t index) { return rows_[index]; }

    Row thread(std::uint32_t index) {
        ImportedRow& row = rows_[index];
        if (row.thread == kNoRow) {
            // Rows that are not separate threads share the thread of their owner.
            const auto is_owner = [&](std::uint32_t owner) {
                return rows_[owner].kind == ImportedRow::Kind::Own || rows_[owner].owner == owner;
            };
            const bool has_owner = row.kind != ImportedRow::Kind::Own && row.owner != ImportedRow::kNone &&
                                   row.owner != index && is_owner(row.owner);
            row.thread = has_owner ? thread(row.owner) : assembler_.add_thread({});
            // A thread with only async ranges owns its row.
            const bool stays_async = row.kind == ImportedRow::Kind::Async && row.owner == index;
            if (!has_owner && !stays_async) rows_[index].kind = ImportedRow::Kind::Own;
            rows_[index].has_own_thread = !has_owner;
        }
        return rows_[index].thread;
    }
    std::uint32_t lane(std::uint32_t index) {
        if (rows_[index].lane == ImportedRow::kNone) {
            const Row own = thread(index);
            ImportedRow& row = rows_[index];
            if (row.kind == ImportedRow::Kind::Overlap) {
                const std::uint32_t owners = lane(row.owner);
                rows_[index].lane = owners;
            } else {
                Lane made;
                made.thread = own;
                if (row.kind == ImportedRow::Kind::Async) made.kind = TrackKind::Async;
                if (row.kind != ImportedRow::Kind::Own) made.name = row.name;
                row.lane = assembler_.add_lane(made);
            }
        }
        return rows_[index].lane;
    }
    std::uint32_t async_lane(std::uint32_t index) {
        if (rows_[index].async_lane == ImportedRow::kNone) {
            rows_[index].async_lane =
                assembler_.add_lane({.thread = thread(index), .kind = TrackKind::Async});
        }
        return rows_[index].async_lane;
    }

    void name_process(const ChromeId& pid, StringId name) { processes_[process_index(pid)].name = name; }
    void label_process(const ChromeId& pid, StringId labels) {
        processes_[process_index(pid)].labels = labels;
    }
    void name_row(std::uint32_t row, StringId name) { rows_[row].name = name; }

    /// Creates the processes and determines which rows are devices. `is_marey_trace`: resolves names that our
    /// exporter generates.
    void finish(bool is_marey_trace) {
        for (std::uint32_t i = 0; i < processes_.size(); ++i)
            process_of_name_.try_emplace(text(processes_[i].name), i);
        for (ImportedRow& row : rows_) {
            mark_device(row);
            if (row.thread != kNoRow && !row.is_device && first_host_ == ImportedRow::kNone)
                first_host_ = row.process;
        }
        for (ImportedRow& row : rows_) {
            if (row.thread != kNoRow) finish_thread(row, is_marey_trace);
        }
        for (const ImportedRow& row : rows_) {
            if (row.lane == ImportedRow::kNone || !row.is_device || row.kind == ImportedRow::Kind::Overlap)
                continue;
            Lane& lane = assembler_.lane(row.lane);
            if (lane.kind == TrackKind::Thread) lane.kind = TrackKind::Device;
            lane.device = {row.device_type, static_cast<std::int32_t>(std::clamp<std::int64_t>(
                                                row.device, -1, std::numeric_limits<std::int32_t>::max()))};
            lane.stream = row.stream;
        }
    }
    /// Adds facts about the file, after finish(): for every process, or for the only one.
    void add_facts(std::int64_t base_ns, std::int32_t rank, const std::string& host) {
        const auto count =
            std::ranges::count_if(processes_, [](const Process& p) { return p.row != kNoRow; });
        for (const Process& process : processes_) {
            if (process.row == kNoRow) continue;
            ProcessInfo& info = assembler_.process(process.row);
            info.realtime_offset_ns = base_ns;
            info.host = assembler_.string(host);
            if (count == 1 && info.node < 0) info.node = rank;
        }
    }

  private:
    /// The number after `start`, as in "GPU 3"; -1 if there is none.
    static std::int64_t number_after(std::string_view text, std::string_view start) {
        const std::size_t at = text.find(start);
        if (at == text.npos) return -1;
        text.remove_prefix(at + start.size());
        std::int32_t number = -1;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        return error == std::errc() && stop != text.data() ? number : -1;
    }

    struct Process {
        ChromeId id;
        StringId name = 0;
        StringId labels = 0;
        Row row = kNoRow;
        std::uint32_t threads = 0;
    };
    struct RowKey {
        ChromeId pid, tid;
        friend bool operator==(const RowKey&, const RowKey&) noexcept = default;
    };
    struct RowHash {
        std::size_t operator()(const RowKey& key) const noexcept {
            return mix_hash(mix_hash(static_cast<std::uint64_t>(key.pid.number), key.pid.text),
                            static_cast<std::uint64_t>(key.tid.number) ^ std::uint64_t{key.tid.text} << 40);
        }
    };
    struct Cached {
        RowKey key;
        std::uint32_t index = ImportedRow::kNone;
    };

    std::uint32_t process_index(const ChromeId& pid) {
        const auto [place, is_new] =
            process_of_.try_emplace(RowKey{pid, {}}, static_cast<std::uint32_t>(processes_.size()));
        if (is_new) processes_.push_back({pid});
        return place->second;
    }
    /// The device number of a process, or -1 if it is not a device.
    std::int64_t device_of_process(const Process& process, DeviceType& type) const {
        const std::string& labels = text(process.labels);
        const std::string& name = text(process.name);
        type = DeviceType::Cuda;
        if (labels.starts_with("GPU ")) return number_after(labels, "GPU ");
        if (name.find("/device:GPU:") != name.npos) return number_after(name, "/device:GPU:");
        type = DeviceType::Other;
        if (labels.starts_with("device ")) return number_after(labels, "device ");
        return number_after(name, "/device:TPU:");
    }
    void mark_device(ImportedRow& row) {
        DeviceType type{};
        const std::int64_t number = device_of_process(processes_[row.process], type);
        if (number < 0 && !row.is_device) return;
        if (!row.is_device) row.device_type = type;
        row.is_device = true;
        if (row.device < 0) row.device = number >= 0 ? number : row.pid.text == 0 ? row.pid.number : -1;
        if (row.stream < 0 && row.tid.text == 0 && row.tid.number >= 0 && row.kind == ImportedRow::Kind::Own)
            row.stream = row.tid.number;
    }
    Row process_row(std::uint32_t index, bool is_marey_trace) {
        Process& process = processes_[index];
        if (process.row != kNoRow) return process.row;
        ProcessInfo info;
        std::string name = text(process.name);
        if (name.empty()) name = text(process.id.text);
        info.pid = process.id.text == 0 && process.id.number != ChromeId::kMissing ? process.id.number : 0;
        if (is_marey_trace && name.ends_with(')')) {
            const std::size_t at = name.rfind(" (rank ");
            const std::int64_t node = at == name.npos ? -1 : number_after(name, " (rank ");
            if (node >= 0) {
                info.node = static_cast<std::int32_t>(node);
                name.resize(at);
            }
        }
        const std::string& labels = text(process.labels);
        if (!labels.empty() && !labels.starts_with("CPU") && !labels.starts_with("GPU "))
            name += (name.empty() ? "" : " (") + labels + (name.empty() ? "" : ")");
        info.name = assembler_.string(name);
        process.row = assembler_.add_process(info);
        return process.row;
    }
    /// The process that used these devices: "GPU 0 of train" names it; otherwise the first process.
    std::uint32_t host_of(const ImportedRow& row) const {
        const std::string& name = text(processes_[row.process].name);
        if (const std::size_t of = name.find(" of "); of != name.npos) {
            const auto found = process_of_name_.find(name.substr(of + 4));
            if (found != process_of_name_.end()) return found->second;
        }
        return first_host_ != ImportedRow::kNone ? first_host_ : row.process;
    }
    void finish_thread(ImportedRow& row, bool is_marey_trace) {
        if (!row.has_own_thread) return;
        const std::uint32_t process = row.is_device ? host_of(row) : row.process;
        const Row owner = process_row(process, is_marey_trace);
        ThreadInfo& thread = assembler_.thread(row.thread);
        thread.process = owner;
        thread.id = ++processes_[process].threads;
        const bool has_number = row.tid.text == 0 && row.tid.number != ChromeId::kMissing;
        thread.os_tid = has_number && !row.is_device ? row.tid.number : 0;
        thread.name = assembler_.string(thread_name(row, is_marey_trace));
    }
    /// PyTorch writes "thread 12 (name)", and "stream 7 " with a trailing space.
    std::string thread_name(const ImportedRow& row, bool is_marey_trace) const {
        std::string name = text(row.name);
        while (name.ends_with(' ')) name.pop_back();
        if (name.empty() && row.is_device && row.stream >= 0) return "stream " + std::to_string(row.stream);
        if (name.empty()) return text(row.tid.text);
        constexpr std::string_view kThread = "thread ";
        if (!name.starts_with(kThread)) return name;
        const std::size_t digits_end = name.find_first_not_of("0123456789", kThread.size());
        if (digits_end == kThread.size()) return name;
        if (digits_end == name.npos) return is_marey_trace ? std::string() : name;
        if (name.compare(digits_end, 2, " (") == 0 && name.ends_with(')'))
            return name.substr(digits_end + 2, name.size() - digits_end - 3);
        return name;
    }
    const std::string& text(StringId id) const { return assembler_.text(id); }

    TraceAssembler& assembler_;
    std::vector<ImportedRow> rows_;
    std::vector<Process> processes_;
    std::unordered_map<RowKey, std::uint32_t, RowHash> row_of_;
    std::unordered_map<RowKey, std::uint32_t, RowHash> process_of_;
    std::unordered_map<std::string, std::uint32_t> process_of_name_;
    std::array<Cached, 64> cache_{};
    std::uint32_t last_ = ImportedRow::kNone;  ///< last row that was requested
    std::uint32_t first_host_ = ImportedRow::kNone;
};

}  // namespace marey
