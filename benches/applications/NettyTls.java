// Maven: io.netty:netty-handler:4.1.115.Final
// Maven: io.netty:netty-tcnative-boringssl-static:2.0.69.Final
// Maven: org.bouncycastle:bcpkix-jdk18on:1.78.1

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import io.netty.handler.ssl.util.SelfSignedCertificate;
import java.net.InetSocketAddress;

/**
 * Sends bytes back and forth over TLS by Netty and BoringSSL, on connections that are replaced now and then.
 */
final class NettyTls {
    private NettyTls() {}

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        SelfSignedCertificate own = new SelfSignedCertificate();
        SslContext server = SslContextBuilder.forServer(own.certificate(), own.privateKey())
                .sslProvider(SslProvider.OPENSSL)
                .build();
        SslContext client = SslContextBuilder.forClient()
                .sslProvider(SslProvider.OPENSSL)
                .trustManager(InsecureTrustManagerFactory.INSTANCE)
                .build();
        EventLoopGroup group = new NioEventLoopGroup(2);
        try {
            Channel listening = new ServerBootstrap()
                    .group(group)
                    .channel(NioServerSocketChannel.class)
                    .childHandler(initializer(server, Long.MAX_VALUE, false))
                    .bind("127.0.0.1", 0)
                    .sync()
                    .channel();
            int port = ((InetSocketAddress) listening.localAddress()).getPort();
            while (System.nanoTime() < end) {
                new Bootstrap()
                        .group(group)
                        .channel(NioSocketChannel.class)
                        .handler(initializer(client, 4L << 20, true))
                        .connect("127.0.0.1", port)
                        .sync()
                        .channel()
                        .closeFuture()
                        .sync();
            }
        } finally {
            group.shutdownGracefully().sync();
        }
    }

    private static ChannelInitializer<SocketChannel> initializer(
            SslContext context, long bytes, boolean begins) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                channel.pipeline().addLast(context.newHandler(channel.alloc()), new Echo(bytes, begins));
            }
        };
    }

    /** Sends received bytes back, until it has received a given number of bytes. */
    private static final class Echo extends ChannelInboundHandlerAdapter {
        private long left;
        private final boolean begins;

        Echo(long bytes, boolean begins) {
            left = bytes;
            this.begins = begins;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            if (begins) {
                context.writeAndFlush(Unpooled.wrappedBuffer(new byte[16 * 1024]));
            }
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            left -= ((ByteBuf) message).readableBytes();
            if (left > 0) {
                context.writeAndFlush(message);
            } else {
                ((ByteBuf) message).release();
                context.close();
            }
        }
    }
}
