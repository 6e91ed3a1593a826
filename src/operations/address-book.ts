/** Operations on the address book of this node's user: labels for AIDs, and favourites. */
import { Type } from 'typebox';
import { MAX_ALIAS_CHARS, MAX_BOOK_ENTRIES } from '../foundation/domain/address-book.ts';
import { declare } from './operation.ts';
import { AidText, closed, NONE, Timestamp } from './schemas.ts';

const MAX_TEXT_CHARS = 256;
const MAX_PROTOCOLS = 16;

const BOOK = {
  params: NONE,
  query: NONE,
  body: NONE,
  path: '/node/address-book',
  heartbeat: false,
  tag: 'Address book',
} as const;

const Text = Type.String({ maxLength: MAX_TEXT_CHARS });
const Aliases = Type.Record(Type.String(), Type.String({ minLength: 1, maxLength: MAX_ALIAS_CHARS }), {
  maxProperties: MAX_BOOK_ENTRIES,
  description: 'AID to label; a label stands for one agent only.',
});
const Protocols = Type.Array(Text, { maxItems: MAX_PROTOCOLS });

export const AddressBookView = Type.Object({
  aliases: Aliases,
  favorites: Type.Array(Type.Object({ id: Text, aid: AidText, skill: Text, protocols: Protocols, addedAt: Timestamp })),
});

export const addressBookOperations = declare({
  addressBookGet: {
    ...BOOK,
    summary: 'Shows the address book.',
    method: 'GET',
    output: AddressBookView,
    permission: 'read',
    errors: [],
  },

  addressBookPut: {
    ...BOOK,
    summary: 'Replaces the whole address book.',
    method: 'PUT',
    body: closed({
      aliases: Aliases,
      favorites: Type.Array(
        closed({
          id: Type.Optional(Type.String({ maxLength: MAX_TEXT_CHARS, description: 'The AID where it is left out.' })),
          aid: Text,
          skill: Type.Optional(Text),
          protocols: Type.Optional(Protocols),
          addedAt: Type.Optional(Timestamp),
        }),
        { maxItems: MAX_BOOK_ENTRIES },
      ),
    }),
    output: AddressBookView,
    permission: 'write',
    errors: ['bad_aid'],
  },
});
