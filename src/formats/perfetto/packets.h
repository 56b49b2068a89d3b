// packets.h: reads the packets of a Perfetto trace one by one, using zlib if they are compressed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include <marey/error.h>

#include "base/expansion_limit.h"

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {

#if MAREY_HAVE_ZLIB
/// Holds decompressed data that has not been used yet.
class PerfettoInflater {
  public:
    PerfettoInflater(std::string_view bytes, ExpansionLimit& limit) : input_(bytes), limit_(limit) {
        constexpr int kGzipOrZlib = 15 + 32;
        if (inflateInit2(&stream_, kGzipOrZlib) != Z_OK) throw Error(limit.name() + ": out of memory");
    }
    ~PerfettoInflater() { inflateEnd(&stream_); }

    /// Returns `rest`, which must be the end of the previous result, followed by more data until there are
    /// `bytes` bytes or the input ends.
    std::string_view more(std::string_view rest, std::size_t bytes) {
        buffer_.erase(0, buffer_.size() - rest.size());
        while (buffer_.size() < bytes && !done_) {
            const std::size_t old = buffer_.size();
            buffer_.resize(old + kPiece);
            stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data() + old);
            stream_.avail_out = static_cast<uInt>(kPiece);
            inflate_some();
            buffer_.resize(buffer_.size() - stream_.avail_out);
        }
        return buffer_;
    }
    bool is_whole() const { return whole_; }

  private:
    static constexpr std::size_t kPiece = std::size_t{1} << 18;

    void inflate_some() {
        const auto part = static_cast<uInt>(std::min<std::size_t>(input_.size(), 1u << 30));
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
        stream_.avail_in = part;
        const int state = inflate(&stream_, Z_NO_FLUSH);
        input_.remove_prefix(part - stream_.avail_in);
        limit_.add_unpacked(kPiece - stream_.avail_out);
        whole_ = state == Z_STREAM_END;
        if (state == Z_STREAM_END && !input_.empty()) {  // gzip files may be concatenated
            done_ = inflateReset(&stream_) != Z_OK;
        } else {
            done_ = state != Z_OK;
        }
    }

    std::string_view input_;
    ExpansionLimit& limit_;
    std::string buffer_;
    z_stream stream_{};
    bool done_ = false;
    bool whole_ = false;
};
#else
class PerfettoInflater {
  public:
    PerfettoInflater(std::string_view, ExpansionLimit& limit) {
        throw Error(limit.name() + ": this Marey was built without zlib and cannot read compressed files");
    }
    std::string_view more(std::string_view rest, std::size_t) { return rest; }
    bool is_whole() const { return true; }
};
#endif

/// Splits bytes into packets, decompressing gzip or zlib on the fly. The bytes must outlive this.
class PerfettoPackets {
  public:
    /// `limit` must outlive this and count the input; compressed data is added to it. Throws marey::Error,
    /// starting with the limit's name, if the data is compressed and this build has no zlib.
    PerfettoPackets(std::string_view bytes, ExpansionLimit& limit, bool is_compressed) {
        if (is_compressed)
            inflater_ = std::make_unique<PerfettoInflater>(bytes, limit);
        else
            rest_ = bytes;
    }

    static bool is_gzip(std::string_view bytes) {
        return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
    }

    /// Reads the next packet, which is valid until the next call; returns false if there is none. Throws
    /// marey::Error if the compressed data exceeds the limit.
    bool next(std::string_view& packet) {
        constexpr char kPacketTag = 0x0a;
        if (cut_short_ || damaged_) return false;
        if (!fill(1)) {
            cut_short_ = inflater_ != nullptr && !inflater_->is_whole();
            return false;
        }
        if (rest_[0] != kPacketTag) {
            damaged_ = true;
            return false;
        }
        rest_.remove_prefix(1);
        std::uint64_t size = 0;
        if (!read_varint(size) || !fill(size)) {
            cut_short_ = !damaged_;
            return false;
        }
        packet = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
    }

    /// After the last packet: why there are no more. At most one is true.
    bool is_cut_short() const { return cut_short_; }
    bool is_damaged() const { return damaged_; }

  private:
    bool fill(std::size_t bytes) {
        if (rest_.size() < bytes && inflater_ != nullptr) rest_ = inflater_->more(rest_, bytes);
        return rest_.size() >= bytes;
    }
    /// Returns false if the data ends too early or the number is too long (then sets damaged_).
    bool read_varint(std::uint64_t& value) {
        value = 0;
        for (unsigned i = 0; i < 10; ++i) {
            if (!fill(i + 1)) return false;
            value |= static_cast<std::uint64_t>(rest_[i] & 0x7f) << (7 * i);
            if ((rest_[i] & 0x80) == 0) {
                rest_.remove_prefix(i + 1);
                return true;
            }
        }
        damaged_ = true;
        return false;
    }

    std::string_view rest_;  ///< available data that has not been returned yet
    std::unique_ptr<PerfettoInflater> inflater_;
    bool cut_short_ = false;
    bool damaged_ = false;
};

}  // namespace marey
