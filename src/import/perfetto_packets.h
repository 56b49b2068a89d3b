// perfetto_packets.h: the packets of a Perfetto trace, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace marey {

/// Splits bytes, which are read as they come and may be gzip or zlib, into packets. The bytes must outlive
/// this.
class PerfettoPackets {
  public:
    /// Throws marey::Error, naming `name`, when they are compressed and this build has no zlib.
    PerfettoPackets(std::string_view bytes, const std::string& name, bool is_compressed);
    ~PerfettoPackets();
    PerfettoPackets(const PerfettoPackets&) = delete;
    PerfettoPackets& operator=(const PerfettoPackets&) = delete;

    static bool is_gzip(std::string_view bytes) {
        return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
    }

    /// The next packet, valid until the next call; false: there is none.
    bool next(std::string_view& packet);

    /// After the last one: why there are no more. At most one is true.
    bool is_cut_short() const { return cut_short_; }
    bool is_damaged() const { return damaged_; }

  private:
    class Inflater;

    bool fill(std::size_t bytes);
    bool read_varint(std::uint64_t& value);

    std::string_view rest_;  ///< what is there and not yet handed out
    std::unique_ptr<Inflater> inflater_;
    bool cut_short_ = false;
    bool damaged_ = false;
};

}  // namespace marey
