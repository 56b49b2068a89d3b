"""Linear algebra with NumPy: three ways to solve least squares, and a power iteration."""

import numpy as np


def normal_equations(a, b):
    return np.linalg.solve(a.T @ a, a.T @ b)


def by_qr(a, b):
    q, r = np.linalg.qr(a)
    return np.linalg.solve(r, q.T @ b)


def by_svd(a, b):
    return np.linalg.lstsq(a, b, rcond=None)[0]


def largest_eigenvalue(a, steps):
    vector = np.ones(a.shape[0])
    for _ in range(steps):
        vector = a @ vector
        vector /= np.linalg.norm(vector)
    return vector @ a @ vector


def main():
    random = np.random.default_rng(7)
    a, b = random.normal(size=(600, 120)), random.normal(size=600)
    answers = [solve(a, b) for solve in (normal_equations, by_qr, by_svd)]
    difference = max(np.abs(answers[0] - answer).max() for answer in answers)
    print(f"largest difference: {difference:.1e}")
    print(f"largest eigenvalue: {largest_eigenvalue(a.T @ a, 300):.3f}")


if __name__ == "__main__":
    main()
