/** Brings offered files here: to a folder of the daemon, or to a program that puts them where a person says. */
import { join } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { numberedName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOffers } from './file-offers.ts';
import type { FileOffer, OfferedBytes, OfferSources } from './types.ts';

/** Where accepted files go, below files_root. */
const RECEIVED = 'received';
/** Names that are tried for one file. */
const MAX_NAMES = 100;

export interface OfferTakerDependencies<B extends OfferedBytes> extends OfferSources<B> {
  readonly offers: Pick<FileOffers, 'takeable' | 'taken'>;
}

export class OfferTaker<B extends OfferedBytes> {
  readonly #deps: OfferTakerDependencies<B>;

  constructor(dependencies: OfferTakerDependencies<B>) {
    this.#deps = dependencies;
  }

  /**
   * Gets the file of an offer below files_root, and tells its sender.
   * @returns the absolute path of the file
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` where it is not the file that was offered, and what
   *   getting an object gives
   */
  async accept(aid: Aid, id: string, signal: AbortSignal): Promise<string> {
    const { offers } = this.#deps;
    const { path } = await this.#get(aid, offers.takeable(aid, id), signal);
    offers.taken(aid, id);
    return path;
  }

  /** Bytes of an offer to an agent here that have come, while it is being got below files_root; null otherwise. */
  received({ direction, state, objectId }: FileOffer): number | null {
    return direction === 'in' && state === 'open' ? this.#deps.progress(objectId) : null;
  }

  async #get(aid: Aid, { objectId, size, name, peer: hint }: FileOffer, signal: AbortSignal) {
    for (let number = 0; ; number++) {
      const dest = join(RECEIVED, numberedName(name, number));
      try {
        return await this.#deps.get({ aid, objectId, size, hint, dest, register: false, force: false, signal });
      } catch (error) {
        // Something else has this name.
        const isTaken = error instanceof SvcError && error.code === 'wrong_state';
        if (!isTaken || number + 1 === MAX_NAMES) throw error;
      }
    }
  }

  /**
   * Asks the sender for the bytes of an offer.
   * @param range of a request of HTTP
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` where it is not as long as was said, and what reading
   *   from a holder gives
   */
  async read(aid: Aid, id: string, range: string | undefined, signal: AbortSignal) {
    const { objectId, peer: holder, size } = this.#deps.offers.takeable(aid, id);
    const headers = range === undefined ? {} : { range };
    const object = await this.#deps.read({ local: aid, holder, objectId, method: 'GET', headers, signal });
    if (object.size === size && object.status !== 304) return { object, objectId };
    object.body.destroy();
    throw new SvcError('protocol_error', { message: 'The file has another size than was said of it.' });
  }
}
