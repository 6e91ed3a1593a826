import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiReference } from '../../src/daemon/api.ts';
import { buildCapabilities } from '../../src/daemon/capabilities.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { openFoundation } from '../../src/daemon/foundation.ts';
import { Life, type Stage } from '../../src/daemon/life.ts';
import { buildNetwork } from '../../src/daemon/network.ts';
import { buildUpdater } from '../../src/daemon/update.ts';
import type { Component } from '../../src/foundation/lifecycle.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ENVIRONMENT = { SVCD_MDNS: 'false', SVCD_LOG_LEVEL: 'error' };

function argumentsFor(dataDir: string) {
  const flags = { listen_addr: '127.0.0.1:0', api_addr: '127.0.0.1:0', open_browser: 'false' };
  return { dataDir, configFile: join(dataDir, 'config.toml'), flags };
}

test('components that respond to others start before the network, and active ones after it', async (t) => {
  const parts: Record<Stage, string[]> = { answering: [], network: [], acting: [], api: [] };
  class Listing extends Life {
    override add(stage: Stage, part: Component): void {
      parts[stage].push(part.constructor.name);
    }
  }
  const life = new Listing();
  t.after(() => life.end());
  const foundation = await openFoundation(argumentsFor(temporaryDirectory(t)), ENVIRONMENT, life);
  const network = await buildNetwork(foundation);
  buildCapabilities(foundation, network, new ApiReference(true));
  buildUpdater(foundation, ENVIRONMENT, null);
  assert.deepEqual(parts, {
    answering: [
      ...['AgentRegistry', 'CallServer', 'ObjectService', 'ObjectServer', 'EventLog', 'AccessRequests'],
      'OnDemandServices',
      'Entry',
      'PublicServer',
    ],
    network: [
      ...['NativeQuicEndpoint', 'PeerTable', 'RecordDht', 'UdpLanes', 'OwnAddresses', 'NetworkMonitor'],
      'LanTcp',
      // The first of these releases port mappings.
      ...['Object', 'NatDetector', 'AddressVerification', 'ChosenHelpers', 'TurnRendezvousServer'],
      ...['UdpFallback', 'TlsServer'],
    ],
    acting: [
      'Directory',
      'Notes',
      'Chat',
      'Groups',
      'TunnelService',
      'OwnCards',
      'WebhookUrls',
      'Webhooks',
      'FileOffers',
      'NameHolder',
      'Origins',
      'Certificates',
      'TrafficHistory',
      'Updater',
    ],
    api: [],
  });
});

test('an event stream ends cleanly when the daemon stops, and no client is admitted anymore', async (t) => {
  const daemon = await Daemon.start(argumentsFor(temporaryDirectory(t)), ENVIRONMENT);
  const api = `http://${daemon.addresses().api_addr}`;
  const stream = await fetch(`${api}/events`, { headers: { accept: 'text/event-stream' } });
  assert.equal(stream.status, 200);
  // Rejects if the connection is reset.
  const whole = stream.text();
  await daemon.stop('test');
  assert.match(await whole, /^retry: /);
  await assert.rejects(fetch(`${api}/health`));
});
