/** Downloads offered files: to a folder of the daemon, or to a client that stores them itself. */
import { join } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { numberedName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOffers } from './file-offers.ts';
import type { FileOffer, OfferedBytes, OfferSources } from './types.ts';

/** Folder of accepted files, below files_root. */
const RECEIVED = 'received';
/** Limit of names that are tried for one file. */
const MAX_NAMES = 100;

export interface OfferTakerDependencies<B extends OfferedBytes> extends OfferSources<B> {
  readonly offers: Pick<FileOffers, 'acceptable' | 'taken'>;
}

export class OfferReceiver<B extends OfferedBytes> {
  readonly #deps: OfferTakerDependencies<B>;

  constructor(dependencies: OfferTakerDependencies<B>) {
    this.#deps = dependencies;
  }

  /**
   * Downloads the file of an offer below files_root and notifies its sender.
   * @returns the absolute path of the file
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` if it is not the offered file, and the errors of
   *   getting an object
   */
  async accept(aid: Aid, id: string, signal: AbortSignal): Promise<string> {
    const { offers } = this.#deps;
    const { path } = await this.#get(aid, offers.acceptable(aid, id), signal);
    offers.taken(aid, id);
    return path;
  }

  /** Downloaded bytes of an offer to a local agent, or null if it is not being downloaded below files_root. */
  received({ direction, state, objectId }: FileOffer): number | null {
    return direction === 'in' && state === 'open' ? this.#deps.progress(objectId) : null;
  }

  async #get(aid: Aid, { objectId, size, name, peer: hint }: FileOffer, signal: AbortSignal) {
    for (let number = 0; ; number++) {
      const dest = join(RECEIVED, numberedName(name, number));
      try {
        return await this.#deps.get({ aid, objectId, size, hint, dest, register: false, force: false, signal });
      } catch (error) {
        // Another file has this name.
        const isTaken = error instanceof SvcError && error.code === 'wrong_state';
        if (!isTaken || number + 1 === MAX_NAMES) throw error;
      }
    }
  }

  /**
   * Requests the bytes of an offer from its sender.
   * @param range the `Range` header of an HTTP request
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` if the size differs from the offer, and the errors of
   *   reading from a holder
   */
  async read(aid: Aid, id: string, range: string | undefined, signal: AbortSignal) {
    const { objectId, peer: holder, size } = this.#deps.offers.acceptable(aid, id);
    const headers = range === undefined ? {} : { range };
    const object = await this.#deps.read({ local: aid, holder, objectId, method: 'GET', headers, signal });
    if (object.size === size && object.status !== 304) return { object, objectId };
    object.body.destroy();
    throw new SvcError('protocol_error', { message: 'The size of the file differs from the offer.' });
  }
}
