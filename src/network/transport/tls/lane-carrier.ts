/** One end of a lane over TLS: its bytes as messages of a WebSocket. */
import { EventEmitter } from 'node:events';
import type { RawData, WebSocket } from 'ws';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { LaneCarrier } from '../sealed-lane.ts';
import { RECORD_OVERHEAD_BYTES } from '../sealed-records.ts';
import { MAX_TLS_MESSAGE_BYTES } from './wire.ts';

/** Bytes in the memory of the socket at which the writer must wait. */
const MAX_BUFFERED_BYTES: number = 512 * 1024;

export class TlsLaneCarrier extends EventEmitter implements LaneCarrier {
  /** The lane itself notices a loss. */
  readonly inflight = 0;
  /** Unknown, because it cannot be measured between the ends. */
  readonly rtt = 0;
  readonly maxPayloadBytes: number = MAX_TLS_MESSAGE_BYTES - RECORD_OVERHEAD_BYTES;
  bytesTransmitted = 0;
  bytesReceived = 0;
  packetsReceived = 0;
  readonly #socket: WebSocket;
  #owesDrain = false;

  constructor(socket: WebSocket) {
    super();
    this.#socket = socket;
    socket.on('message', (data: RawData, isBinary) => {
      if (!isBinary || !Buffer.isBuffer(data)) return this.destroy();
      this.bytesReceived += data.length;
      this.packetsReceived++;
      this.emit('data', data);
      // The lane has copied it.
      freeMemory(data);
    });
    socket.on('close', () => {
      this.emit('end');
      this.emit('close');
    });
  }

  write(record: Uint8Array): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return false;
    this.bytesTransmitted += record.length;
    this.#socket.send(record, () => this.#onSent(record));
    // A record that finds room, such as a pulse, must not cancel the drain event that an earlier one waits for.
    this.#owesDrain ||= this.#socket.bufferedAmount > MAX_BUFFERED_BYTES;
    return !this.#owesDrain;
  }

  end(): void {
    this.#socket.close();
  }

  destroy(): void {
    this.#socket.terminate();
  }

  #onSent(record: Uint8Array): void {
    freeMemory(record);
    if (!this.#owesDrain || this.#socket.bufferedAmount > MAX_BUFFERED_BYTES / 2) return;
    this.#owesDrain = false;
    this.emit('drain');
  }
}
