/**
 * Small texts that the browser keeps for the panel. A browser that blocks storage throws at every access; the texts then
 * live in the page and are gone when it is closed.
 */
class Kept {
  readonly #storage: () => Storage;
  readonly #here = new Map<string, string>();

  constructor(storage: () => Storage) {
    this.#storage = storage;
  }

  /** The text of a key; empty if there is none. */
  get(key: string): string {
    try {
      return this.#here.get(key) ?? this.#storage().getItem(key) ?? '';
    } catch {
      return '';
    }
  }

  /** Keeps a text; an empty one removes it. */
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

/** Shared by all tabs, until the user clears it. */
export const keptForAll = new Kept(() => localStorage);
/** Of this tab alone. */
export const keptForTab = new Kept(() => sessionStorage);
