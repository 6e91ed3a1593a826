/** The wallet of the browser (EIP-1193). It shows the text in its own window, and its key never leaves it. */
import { toHex } from '../../../src/foundation/bytes.ts';

export interface BrowserWallet {
  request(question: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
}

function isWallet(value: unknown): value is BrowserWallet {
  return typeof value === 'object' && value !== null && 'request' in value && typeof value.request === 'function';
}

/** The wallet that an extension provides. Null if there is none. */
export function browserWallet(): BrowserWallet | null {
  const wallet: unknown = Reflect.get(globalThis, 'ethereum');
  return isWallet(wallet) ? wallet : null;
}

/**
 * The address that the user selects.
 *
 * @throws Error if the user refuses
 */
export async function addressOf(wallet: BrowserWallet): Promise<string> {
  const accounts = await wallet.request({ method: 'eth_requestAccounts' });
  const first: unknown = Array.isArray(accounts) ? accounts[0] : undefined;
  return typeof first === 'string' ? first : '';
}

/**
 * The signature of a text (EIP-191), in hex.
 *
 * @throws Error if the user refuses
 */
export async function signedBy(wallet: BrowserWallet, address: string, text: string): Promise<string> {
  const bytes = `0x${toHex(new TextEncoder().encode(text))}`;
  const signature = await wallet.request({ method: 'personal_sign', params: [bytes, address] });
  return typeof signature === 'string' ? signature : '';
}
