/** Fractions of whole numbers, exact. */
import { InvalidInput } from "./errors.js";

/** A fraction of two BigInts; the second is positive. */
export class Fraction {
  /** @param {bigint} num @param {bigint} [den] */
  constructor(num, den = 1n) {
    this.num = num;
    this.den = den;
  }

  /** @param {string | number | bigint} value */
  static of(value) {
    const [, sign, whole, part = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
    if (whole === undefined) throw new InvalidInput(`${value} is no decimal number.`);
    const num = BigInt(whole + part);
    return new Fraction(sign ? -num : num, 10n ** BigInt(part.length));
  }

  /** @param {Fraction} other */
  times(other) {
    return new Fraction(this.num * other.num, this.den * other.den);
  }

  /** @param {Fraction} other A positive one. */
  over(other) {
    return new Fraction(this.num * other.den, this.den * other.num);
  }

  /** @param {Fraction} other */
  plus(other) {
    return new Fraction(this.num * other.den + other.num * this.den, this.den * other.den);
  }

  /** @param {Fraction} other */
  minus(other) {
    return this.plus(new Fraction(-other.num, other.den));
  }

  /** Rounded up. */
  ceil() {
    const floor = this.num / this.den - (this.num % this.den < 0n ? 1n : 0n);
    return floor * this.den === this.num ? floor : floor + 1n;
  }
}

/** @param {bigint | number} value */
export const whole = (value) => new Fraction(BigInt(value));
