/** Messages between the tabs of the panel. */

interface TabChannel {
  postMessage(message: unknown): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<unknown>) => void): void;
  removeEventListener(type: 'message', listener: (event: MessageEvent<unknown>) => void): void;
}

/** Opens a channel to the other tabs. A browser that blocks storage may refuse it: the channel then leads nowhere. */
export function tabChannel(name: string): TabChannel {
  try {
    return new BroadcastChannel(name);
  } catch {
    const { port1 } = new MessageChannel();
    port1.close();
    return port1;
  }
}
