/** The handlers of the operations on the address book. */
import type { AddressBook } from '../../capabilities/address-book/address-book.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { addressBookOperations } from '../address-book.ts';
import type { Handlers } from '../operation.ts';

export function addressBookHandlers({
  addressBook,
  clock,
}: {
  readonly addressBook: AddressBook;
  readonly clock: Clock;
}): Handlers<typeof addressBookOperations> {
  return {
    addressBookGet: () => addressBook.get(),
    addressBookPut: ({ aliases, favorites }) => {
      const now = isoTime(clock.now());
      const complete = favorites.map((favorite) => {
        const aid = parseAid(favorite.aid);
        return { id: aid, skill: '', protocols: [], addedAt: now, ...favorite, aid };
      });
      return addressBook.replace({ aliases, favorites: complete });
    },
  };
}
