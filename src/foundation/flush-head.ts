/** Sends the head of a message before its body. */
import type { OutgoingMessage } from 'node:http';

/** Sends the head now, with its headers byte for byte. `flushHeaders` of Node would encode their bytes above 0x7F as UTF-8 once more. */
export function flushHead(message: OutgoingMessage): void {
  message.write('', 'latin1');
}
