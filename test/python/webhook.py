"""A webhook of a client of A2A: what a server posts to it."""

import asyncio
import re


class Webhook:
    """Answers each notification with 204 and keeps it: path, type, token, body, and who calls as svcd proves it."""

    def __init__(self):
        self.url = ''
        self.all = []
        self.more = asyncio.Condition()

    async def open(self):
        server = await asyncio.start_server(self.serve, '127.0.0.1', 0)
        self.url = f'http://127.0.0.1:{server.sockets[0].getsockname()[1]}'

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')
        pairs = (line.split(': ', 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        path = head[0].split(' ')[1]
        if 'content-length' in headers:
            body = await reader.readexactly(int(headers['content-length']))
        else:
            body = b''
            while size := int((await reader.readline()).strip() or b'0', 16):
                body += await reader.readexactly(size)
                await reader.readline()
        async with self.more:
            kept = {'path': path, 'type': headers.get('content-type'), 'token': headers.get('x-a2a-notification-token')}
            self.all.append({**kept, 'body': body.decode(), 'caller': headers.get('svc-caller-aid')})
            self.more.notify_all()
        writer.write(b'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
        await writer.drain()
        writer.close()

    async def heard(self, path, word):
        """The first notification at a path whose body has a word."""

        def found():
            return next((one for one in self.all if one['path'] == path and re.search(word, one['body'])), None)

        async with self.more:
            await self.more.wait_for(found)
            return found()
