// packets.h: reads the packets of a Perfetto trace one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace marey {

class ExpansionLimit;

/// Splits bytes into packets, decompressing gzip or zlib on the fly. The bytes must outlive this.
class PerfettoPackets {
  public:
    /// `limit` must outlive this and count the input; compressed data is added to it. Throws marey::Error,
    /// starting with the limit's name, if the data is compressed and this build has no zlib.
    PerfettoPackets(std::string_view bytes, ExpansionLimit& limit, bool is_compressed);
    ~PerfettoPackets();
    PerfettoPackets(const PerfettoPackets&) = delete;
    PerfettoPackets& operator=(const PerfettoPackets&) = delete;

    static bool is_gzip(std::string_view bytes) {
        return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
    }

    /// Reads the next packet, which is valid until the next call; returns false if there is none. Throws
    /// marey::Error if the compressed data exceeds the limit.
    bool next(std::string_view& packet);

    /// After the last packet: why there are no more. At most one is true.
    bool is_cut_short() const { return cut_short_; }
    bool is_damaged() const { return damaged_; }

  private:
    class Inflater;

    bool fill(std::size_t bytes);
    bool read_varint(std::uint64_t& value);

    std::string_view rest_;  ///< available data that has not been returned yet
    std::unique_ptr<Inflater> inflater_;
    bool cut_short_ = false;
    bool damaged_ = false;
};

}  // namespace marey
