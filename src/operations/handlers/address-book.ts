/** The handlers of the operations on the address book. */
import type { AddressBook, AddressBookDocument } from '../../capabilities/address-book/address-book.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { addressBookOperations } from '../address-book.ts';
import type { Handlers, OutputOf } from '../operation.ts';

export interface AddressBookHandlerDependencies {
  readonly addressBook: AddressBook;
  readonly clock: Clock;
}

function view({ aliases, favorites }: AddressBookDocument): OutputOf<typeof addressBookOperations.addressBookGet> {
  return { aliases: { ...aliases }, favorites: favorites.map((f) => ({ ...f, protocols: [...f.protocols] })) };
}

export function addressBookHandlers({
  addressBook,
  clock,
}: AddressBookHandlerDependencies): Handlers<typeof addressBookOperations> {
  return {
    addressBookGet: () => view(addressBook.get()),
    addressBookPut: ({ aliases, favorites }) => {
      const now = isoTime(clock.now());
      const complete = favorites.map((favorite) => {
        const aid = parseAid(favorite.aid);
        return { id: aid, skill: '', protocols: [], addedAt: now, ...favorite, aid };
      });
      return view(addressBook.replace({ aliases, favorites: complete }));
    },
  };
}
