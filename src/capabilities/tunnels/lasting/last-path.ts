/** The path of a link, or of one that is gone: what it was when it was last asked. */
import type { LinkPath, LinkStream } from '../../../network/links/types.ts';

export class LastPath {
  readonly #link: Pick<LinkStream, 'path' | 'destroyed'>;
  #path: LinkPath;

  constructor(link: Pick<LinkStream, 'path' | 'destroyed'>) {
    this.#link = link;
    this.#path = link.path();
  }

  now(): LinkPath {
    if (!this.#link.destroyed) this.#path = this.#link.path();
    return this.#path;
  }
}
