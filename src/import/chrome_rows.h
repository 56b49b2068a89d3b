// chrome_rows.h: the rows of a Chrome trace, told by pid and tid, as threads and lanes of the model.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "import/chrome_event.h"
#include "trace/trace_assembler.h"

namespace marey {

/// What a row is, as far as is known.
struct ImportedRow {
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    enum class Kind : std::uint8_t {
        Own,      ///< a thread, or a queue of a device
        Async,    ///< our own files: ranges out of the nesting of the thread `owner`
        Overlap,  ///< our own files: ranges that cross others of the row `owner`
        Track,    ///< our own files: another track of the thread `owner`
    };
    ChromeId pid, tid;
    std::uint32_t process = 0;  ///< index into the processes of ImportedRows
    Kind kind = Kind::Own;
    std::uint32_t owner = kNone;
    StringId name = 0;
    bool is_device = false;  ///< its events say so
    DeviceType device_type = DeviceType::Cuda;
    std::int64_t device = -1;
    std::int64_t stream = -1;
    Row thread = kNoRow;               ///< made when it is first needed; likewise the lanes
    bool has_own_thread = false;       ///< not that of its owner
    std::uint32_t lane = kNone;        ///< of ranges that nest
    std::uint32_t async_lane = kNone;  ///< of those that only span time
    // The complete event read last, which the arrows right behind it belong to.
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

    /// Makes the processes, and says which rows are devices'. `is_marey_trace`: names that our exporter makes
    /// up are taken for what they stand for.
    void finish(bool is_marey_trace);
    /// Facts of the file, after finish(): of every process, and of the only one.
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
    /// What a row's process says of devices: its number, or -1 when it is none.
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
    std::uint32_t last_ = ImportedRow::kNone;  ///< that was asked for
    std::uint32_t first_host_ = ImportedRow::kNone;
};

}  // namespace marey
