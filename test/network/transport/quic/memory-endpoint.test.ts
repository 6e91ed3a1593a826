import { MemoryQuicNetwork } from '../../../support/memory-quic.ts';
import { quicCompliance } from './compliance.ts';

const network = new MemoryQuicNetwork();

quicCompliance('in memory', {
  create: (key, options) => network.endpoint({ publicKey: key.publicKey, ...options }),
  silentAddress: async () => ({ host: '127.0.0.1', port: network.freePort() }),
});
