// contexts_test.cpp: sets of sessions from inside: which members are alive, and that sets do not pile up.
#include "record/contexts.h"

#include "record/thread_registry.h"

#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace marey {
namespace {

std::shared_ptr<TaskSession> make_session(std::uint64_t id, std::uint64_t armed) {
    auto session = std::make_shared<TaskSession>();
    session->session = id;
    session->armed = armed;
    return session;
}

std::shared_ptr<ContextSessions> make_set(std::shared_ptr<const ContextSessions> outer,
                                          std::shared_ptr<TaskSession> newest) {
    auto set = std::make_shared<ContextSessions>();
    if (outer != nullptr) set->members = outer->members;
    set->members.push_back(std::move(newest));
    set->outer = std::move(outer);
    return set;
}

std::size_t sets_around_this_thread() {
    const auto* const entry = static_cast<const ThreadEntry*>(detail::current_thread->owner);
    std::size_t count = 0;
    for (const ContextSessions* set = entry != nullptr ? entry->sessions : nullptr; set != nullptr;
         set = set->outer.get()) {
        ++count;
    }
    return count;
}

TEST(ContextSessions, NeedWhatTheirLivingMembersNeed) {
    const auto one = make_session(1, 0b01);
    const auto two = make_session(2, 0b10);
    const auto set = make_set(make_set(nullptr, one), two);
    EXPECT_EQ(set->armed(), 0b11u);
    EXPECT_TRUE(set->holds(*one));
    one->is_closed = true;
    EXPECT_EQ(set->armed(), 0b10u);
    two->is_closed = true;
    EXPECT_EQ(set->armed(), 0u);
}

TEST(ContextSessions, AreLeftWhenTheirNewestMembersHaveClosed) {
    const auto one = make_session(1, 1);
    const auto two = make_session(2, 1);
    const auto inner = make_set(make_set(nullptr, one), two);
    EXPECT_EQ(settled(inner.get()), inner.get());
    two->is_closed = true;
    EXPECT_EQ(settled(inner.get()), inner->outer.get());
    one->is_closed = true;
    EXPECT_EQ(settled(inner.get()), nullptr);
    two->is_closed = false;  // the outer one has closed alone
    EXPECT_EQ(settled(inner.get()), inner.get());
}

TEST(ContextSessions, DoNotPileUpOnAThreadWhoseSessionsOthersStop) {
    Session outer(SessionOptions{.threads = Threads::Tasks});
    for (int i = 0; i < 50; ++i) {
        Session inner(SessionOptions{.threads = Threads::Tasks});
        std::thread([&] { inner.discard(); }).join();
        ASSERT_LE(sets_around_this_thread(), 2u);
    }
    outer.discard();
    EXPECT_EQ(current_sessions(), nullptr);
}

TEST(Contexts, RegisterAThreadOnlyForALiveSession) {
    Context context;
    {
        const Session session(SessionOptions{.threads = Threads::Tasks});
        context = Context::current();
        std::thread([&] {
            const Context empty;
            const ContextAdoption nothing(empty);
            EXPECT_EQ(detail::current_thread->owner, nullptr);
            const ContextAdoption adoption(context);
            EXPECT_NE(detail::current_thread->owner, nullptr);
        }).join();
    }
    std::thread([&] {
        const ContextAdoption adoption(context);
        EXPECT_EQ(detail::current_thread->owner, nullptr);
    }).join();
}

TEST(Contexts, KeepASessionsSetAliveAsLongAsAThreadMayReturnToIt) {
    std::weak_ptr<const ContextSessions> set;
    std::thread([&] {
        auto first = std::make_unique<Session>(SessionOptions{.threads = Threads::Tasks});
        set = current_sessions()->weak_from_this();
        const Context empty;
        {
            const ContextAdoption adoption(empty);
            Session second(SessionOptions{.threads = Threads::Tasks});
            first.reset();
            EXPECT_FALSE(set.expired());
        }
        EXPECT_EQ(current_sessions(), nullptr);
    }).join();
    EXPECT_TRUE(set.expired());
}

}  // namespace
}  // namespace marey
