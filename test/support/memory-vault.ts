import type { KeyVault } from '../../src/capabilities/agents/types.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';

/** A key store without a disk. Stored keys are read back as new objects, as from a file. */
export class MemoryVault implements KeyVault {
  readonly seeds = new Map<string, Uint8Array>();

  put(name: string, pair: KeyPair): void {
    this.seeds.set(name, pair.seed);
  }

  get(name: string): KeyPair | null {
    const seed = this.seeds.get(name);
    return seed === undefined ? null : KeyPair.fromSeed(seed);
  }

  delete(name: string): void {
    this.seeds.delete(name);
  }

  list(): string[] {
    return [...this.seeds.keys()];
  }
}
