// function_name_test.cpp: signatures as GCC 12 and Clang 14 print them.
#include "native/function_name.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

struct Case {
    const char* gcc;
    const char* clang;
    const char* name;
};

TEST(FunctionName, IsTheQualifiedNameOfTheFunction) {
    const Case cases[] = {
        {"int main(int, char**)", "int main(int, char **)", "main"},
        {"int ns::A::get(int) const", "int ns::A::get(int) const", "ns::A::get"},
        {"A::A(int)", "A::A(int)", "A::A"},
        {"A::~A()", "A::~A()", "A::~A"},
        {"static void A::make()", "static void A::make()", "A::make"},
        {"A& A::operator=(const A&) &", "A &A::operator=(const A &) &", "A::operator="},
        {"bool A::operator()(int) const", "bool A::operator()(int) const", "A::operator()"},
        {"bool A::operator<(const A&) const", "bool A::operator<(const A &) const", "A::operator<"},
        {"static void* A::operator new(size_t, int*)", "static void *A::operator new(size_t, int *)",
         "A::operator new"},
        {"std::string {anonymous}::f(const char (&)[3])",
         "std::string (anonymous namespace)::f(const char (&)[3])", "f"},
        {"decltype ((t + 1)) f(T) [with T = int; decltype ((t + 1)) = int]", "auto f(T) [T = int]", "f<int>"},
        {"void main(int, char**)::Local::f()", "void main(int, char **)::Local::f()", "main::Local::f"},
    };
    for (const Case& test : cases) {
        EXPECT_EQ(function_name(test.gcc), test.name);
        EXPECT_EQ(function_name(test.clang), test.name);
    }
}

TEST(FunctionName, HasTheArgumentsOfTemplates) {
    const Case cases[] = {
        {"T tmpl(T) [with T = double]", "T tmpl(T) [T = double]", "tmpl<double>"},
        {"T C<T>::get() [with T = int]", "T C<int>::get() [T = int]", "C<int>::get"},
        {"void C<T>::put(U) [with U = double; T = int]", "void C<int>::put(U) [T = int, U = double]",
         "C<int>::put<double>"},
        {"void many(T ...) [with T = {int, double}]", "void many(T...) [T = <int, double>]",
         "many<int, double>"},
        {"void number() [with int N = 3]", "void number() [N = 3]", "number<3>"},
        {"void show(T, std::size_t) [with T = std::__cxx11::basic_string<char>; std::size_t = long unsigned "
         "int]",
         "void show(T, std::size_t) [T = std::basic_string<char>]", "show<std::string>"},
    };
    for (const Case& test : cases) {
        EXPECT_EQ(function_name(test.gcc), test.name);
        EXPECT_EQ(function_name(test.clang), test.name);
    }
}

TEST(FunctionName, OfALambdaContainsTheFunctionAroundIt) {
    const Case cases[] = {
        {"main(int, char**)::<lambda(int)>",
         "auto main(int, char **)::(anonymous class)::operator()(int) const", "main::<lambda>"},
        {"A::run() const::<lambda()>", "auto A::run() const::(lambda)::operator()() const",
         "A::run::<lambda>"},
    };
    for (const Case& test : cases) {
        EXPECT_EQ(function_name(test.gcc), test.name);
        EXPECT_EQ(function_name(test.clang), test.name);
    }
}

TEST(FunctionName, LeavesOtherTextsUnchanged) {
    for (const char* text :
         {"", "top level", ")", "(", "f(", "f)", ">", "]", " [with ]", "::()", "operator", "operator()",
          "a b()", "<lambda(", "x::<lambda()", "f() [with T = ]", "*()", "(((())"}) {
        SCOPED_TRACE(text);
        (void)function_name(text);  // whatever comes in, nothing is read outside of it
    }
    EXPECT_EQ(function_name(""), "");
    EXPECT_EQ(function_name("top level"), "top level");
}

}  // namespace
}  // namespace marey
