// read_rows.h: maps the rows of a Chrome trace, identified by pid and tid, to threads and lanes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

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
    std::uint32_t index(const ChromeId& pid, const ChromeId& tid);
    ImportedRow& at(std::uint32_t index) { return rows_[index]; }

    Row thread(std::uint32_t row);
    std::uint32_t lane(std::uint32_t row);
    std::uint32_t async_lane(std::uint32_t row);

    void name_process(const ChromeId& pid, StringId name);
    void label_process(const ChromeId& pid, StringId labels);
    void name_row(std::uint32_t row, StringId name) { rows_[row].name = name; }

    /// Creates the processes and determines which rows are devices. `is_marey_trace`: resolves names that our
    /// exporter generates.
    void finish(bool is_marey_trace);
    /// Adds facts about the file, after finish(): for every process, or for the only one.
    void add_facts(std::int64_t base_ns, std::int32_t rank, const std::string& host);

  private:
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
        std::size_t operator()(const RowKey& key) const noexcept;
    };
    struct Cached {
        RowKey key;
        std::uint32_t index = ImportedRow::kNone;
    };

    std::uint32_t process_index(const ChromeId& pid);
    /// The device number of a process, or -1 if it is not a device.
    std::int64_t device_of_process(const Process& process, DeviceType& type) const;
    void mark_device(ImportedRow& row);
    Row process_row(std::uint32_t process, bool is_marey_trace);
    std::uint32_t host_of(const ImportedRow& row) const;
    void finish_thread(ImportedRow& row, bool is_marey_trace);
    std::string thread_name(const ImportedRow& row, bool is_marey_trace) const;
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
