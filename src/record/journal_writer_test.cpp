// journal_writer_test.cpp: the journal writer without a recorder.
#include "record/journal_writer.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace marey {
namespace {

using detail::JournalKind;

std::vector<JournalKind> kinds(const std::vector<std::byte>& bytes) {
    std::vector<JournalKind> found;
    detail::StreamRecord head;
    for (std::size_t at = 0; at + sizeof head <= bytes.size(); at += head.bytes) {
        std::memcpy(&head, bytes.data() + at, sizeof head);
        found.push_back(static_cast<JournalKind>(head.kind));
    }
    return found;
}

detail::SessionStopRecord stop_of(std::uint64_t session) {
    detail::SessionStopRecord record{};
    record.session = session;
    return record;
}

TEST(JournalWriter, WritesOnlyWhileASessionLives) {
    LogStore store;
    JournalWriter journal(store);
    const ScopedLock lock(recorder_mutex);
    journal.write_clock();
    EXPECT_TRUE(journal.bytes().empty());
    journal.open();
    journal.write_clock();
    EXPECT_EQ(kinds(journal.bytes()), std::vector{JournalKind::Clock});
    journal.close();
    journal.write_clock();
    EXPECT_TRUE(journal.bytes().empty());
}

TEST(JournalWriter, ACaptureOfOneSessionHasNoMarksOfOthers) {
    LogStore store;
    JournalWriter journal(store);
    const ScopedLock lock(recorder_mutex);
    journal.open();
    journal.write(JournalKind::SessionStop, stop_of(1));
    journal.write_clock();
    journal.write(JournalKind::SessionStop, stop_of(2));
    EXPECT_EQ(kinds(journal.bytes_of(1)), (std::vector{JournalKind::SessionStop, JournalKind::Clock}));
    EXPECT_EQ(kinds(journal.bytes_of(2)), (std::vector{JournalKind::Clock, JournalKind::SessionStop}));
    EXPECT_EQ(kinds(journal.bytes_of(0)), std::vector{JournalKind::Clock});
}

TEST(JournalWriter, NotesAProblemOnceUntilItForgets) {
    LogStore store;
    JournalWriter journal(store);
    const ScopedLock lock(recorder_mutex);
    journal.open();
    journal.add_note("code", "text", false);
    journal.add_note("code", "text", false);
    EXPECT_EQ(kinds(journal.bytes()), std::vector{JournalKind::Note});
    journal.forget_notes();
    journal.add_note("code", "text", false);
    EXPECT_EQ(kinds(journal.bytes()).size(), 2u);
}

TEST(JournalWriter, CountsOverwrittenChunksPerSessionAndThread) {
    LogStore store;
    JournalWriter journal(store);
    const detail::ThreadState state{};
    const ScopedLock lock(recorder_mutex);
    journal.open();
    journal.write_losses(1, state);
    EXPECT_TRUE(journal.bytes().empty()) << "nothing is lost";
    journal.count_overwritten(7, 1);
    journal.count_overwritten(7, 1);
    journal.count_overwritten(8, 2);
    journal.write_losses(1, state);
    journal.write_overwritten(6);
    EXPECT_TRUE(journal.bytes().empty());
    journal.write_overwritten(7);
    ASSERT_EQ(kinds(journal.bytes()), std::vector{JournalKind::Losses});
    detail::LossesRecord losses;
    std::memcpy(&losses, journal.bytes().data(), sizeof losses);
    EXPECT_EQ(losses.thread, 1u);
    EXPECT_EQ(losses.session, 7u);
    EXPECT_EQ(losses.overwritten_chunks, 2u);
}

}  // namespace
}  // namespace marey
