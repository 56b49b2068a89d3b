"""Counts primes in a multiprocessing pool: the time is spent in the workers, each with its own capture."""

import multiprocessing
import sys


def is_prime(number):
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def count_primes(first):
    return sum(is_prime(number) for number in range(first, first + 2000))


def main():
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with multiprocessing.Pool(2) as pool:
        print("primes:", sum(pool.map(count_primes, range(0, blocks * 2000, 2000))))
        pool.close()
        pool.join()


if __name__ == "__main__":
    main()
