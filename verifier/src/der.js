/** Reads DER: each value has one encoding. */

export class Der {
  /** @param {Uint8Array} data @param {number} start @param {number} end */
  constructor(data, start = 0, end = data.length) {
    this.data = data;
    this.at = start;
    this.end = end;
  }

  get more() {
    return this.at < this.end;
  }

  /** One value: its tag, its content, and all its bytes. @param {number} [expected] */
  next(expected) {
    const start = this.at;
    const tag = this.byte();
    let length = this.byte();
    if (length > 128) {
      let count = length - 128;
      if (count > 2) throw new Error("a length is too long");
      for (length = 0; count > 0; count--) length = length * 256 + this.byte();
      if (length < 128) throw new Error("a length is not canonical");
    } else if (length === 128) throw new Error("a length is not there");
    const from = this.at;
    this.at += length;
    if (this.at > this.end) throw new Error("it ends too early");
    if (expected !== undefined && tag !== expected) throw new Error("it is another type");
    return {
      tag,
      content: this.data.subarray(from, this.at),
      whole: this.data.subarray(start, this.at),
      inside: new Der(this.data, from, this.at),
    };
  }

  byte() {
    if (this.at >= this.end) throw new Error("it ends too early");
    return this.data[this.at++];
  }
}
