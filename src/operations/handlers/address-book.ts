/** The handlers of the operations on the address book. */
import type { AddressBook } from '../../capabilities/address-book/address-book.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { addressBookOperations } from '../address-book.ts';
import type { Handlers } from '../operation.ts';

/** True where a write is for the version that is there (RFC 9110, section 13.1.1); for any where it names none. */
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
    addressBookPut: ({ aliases, favorites }, context) => {
      if (!isMeant(context.ifMatch, etag()))
        throw new SvcError('wrong_state', {
          status: 412,
          message: 'Somebody else has changed the address book meanwhile: read it again.',
        });
      const now = isoTime(clock.now());
      const complete = favorites.map((favorite) => {
        const aid = parseAid(favorite.aid);
        return { id: aid, skill: '', protocols: [], addedAt: now, ...favorite, aid };
      });
      const replaced = addressBook.replace({ aliases, favorites: complete });
      context.showVersion?.(etag());
      return replaced;
    },
  };
}
