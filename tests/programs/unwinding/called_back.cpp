// called_back.cpp: a library whose only function calls back from a frame of FRAME_BYTES. Two of them, with
// different sizes, are loaded one after the other at the same address, where they have different frames.
extern "C" __attribute__((visibility("default"), noinline)) void call_back(void (*callback)()) {
    char room[FRAME_BYTES] = {};
    asm volatile("" ::"r"(room) : "memory");
    callback();
    asm volatile("" ::"r"(room) : "memory");
}
