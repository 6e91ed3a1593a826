/** A running hash of everything that happened. Two runs of one seed have the same one. */
const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

export class Fingerprint {
  #first = OFFSET;
  #second = OFFSET ^ 0x5bd1e995;

  add(text: string): void {
    for (let i = 0; i < text.length; i++) this.#byte(text.charCodeAt(i) & 0xff);
  }

  addBytes(bytes: Uint8Array): void {
    for (const byte of bytes) this.#byte(byte);
  }

  #byte(byte: number): void {
    this.#first = Math.imul(this.#first ^ byte, PRIME) >>> 0;
    this.#second = Math.imul(this.#second + byte + (this.#first & 0xff), 0x85ebca6b) >>> 0;
    this.#second ^= this.#second >>> 13;
  }

  /** 16 hexadecimal digits. */
  toString(): string {
    return [this.#first, this.#second].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
