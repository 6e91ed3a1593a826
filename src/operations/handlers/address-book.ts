/** Handlers of the address book operations. */
import type { AddressBook } from '../../capabilities/address-book/address-book.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { addressBookOperations } from '../address-book.ts';
import type { Handlers } from '../operation.ts';

/** True if a write accepts the current version (RFC 9110, section 13.1.1). A write without `If-Match` accepts any. */
function isMeant(ifMatch: string | undefined, etag: string): boolean {
  if (ifMatch === undefined) return true;
  return ifMatch.split(',').some((one) => one.trim() === '*' || one.trim() === etag);
}

export function addressBookHandlers({
  addressBook,
  clock,
}: {
  readonly addressBook: AddressBook;
  readonly clock: Clock;
}): Handlers<typeof addressBookOperations> {
  const etag = (): string => `"${addressBook.version()}"`;
  return {
    addressBookGet: (_input, context) => {
      context.showVersion?.(etag());
      return addressBook.get();
    },
    addressBookPut: ({ favorites, ...labels }, context) => {
      if (!isMeant(context.ifMatch, etag()))
        throw new SvcError('wrong_state', {
          status: 412,
          message: 'The address book was changed by another program. Read it again, then repeat the change.',
        });
      const now = isoTime(clock.now());
      const complete = favorites.map((favorite) => {
        const aid = parseAid(favorite.aid);
        return { id: aid, skill: '', protocols: [], addedAt: now, ...favorite, aid };
      });
      const replaced = addressBook.replace({ ...labels, favorites: complete });
      context.showVersion?.(etag());
      return replaced;
    },
    addressBookList: () => ({
      agents: Object.keys(addressBook.get().aliases).map((text) => {
        const aid = parseAid(text);
        return { aid, labels: addressBook.labels(aid) };
      }),
    }),
  };
}
