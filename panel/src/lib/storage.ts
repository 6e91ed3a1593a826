/**
 * Small texts in the storage of the browser. A browser that blocks storage throws on every access. The texts then stay
 * in memory until the page closes.
 */
class SafeStorage {
  readonly #storage: () => Storage;
  readonly #here = new Map<string, string>();

  constructor(storage: () => Storage) {
    this.#storage = storage;
  }

  /** The text of a key. Empty if there is none. */
  get(key: string): string {
    try {
      return this.#here.get(key) ?? this.#storage().getItem(key) ?? '';
    } catch {
      return '';
    }
  }

  /** Stores a text. An empty text removes it. */
  set(key: string, text: string): void {
    try {
      if (text === '') this.#storage().removeItem(key);
      else this.#storage().setItem(key, text);
      this.#here.delete(key);
    } catch {
      this.#here.set(key, text);
    }
  }
}

/** Shared by all tabs until the user clears it. */
export const sharedStorage = new SafeStorage(() => localStorage);
/** For this tab only. */
export const tabStorage = new SafeStorage(() => sessionStorage);
