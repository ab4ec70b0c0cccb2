package host

// This file connects the network namespaces of several nodes.

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
)

// Switch is a network namespace with nothing but a bridge, into which the uplinks of the nodes are plugged. It outlives each node.
type Switch struct {
	// Name of the namespace, and of the bridge in it.
	Name, Bridge string
	// Owner is written on the bridge, so that it is recognised.
	Owner string
}

// Foreign lists interfaces in the namespace that the cluster does not make; none where there is no such namespace.
func (s Switch) Foreign() ([]string, error) {
	if !NetNSExists(s.Name) {
		return nil, nil
	}
	return Network{Name: s.Name, Bridge: s.Bridge, Owner: s.Owner}.Foreign()
}

// Setup makes the namespace and the bridge, unless they are there.
func (s Switch) Setup() error {
	if !NetNSExists(s.Name) {
		if err := CreateNetNS(s.Name); err != nil {
			return err
		}
	}
	return InNetNS(s.Name, func() error {
		if err := writeSysctl("net/ipv6/conf/default/disable_ipv6", "1"); err != nil {
			return err
		}
		bridge, err := netlink.LinkByName(s.Bridge)
		if err != nil {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = s.Bridge
			bridge = &netlink.Bridge{LinkAttrs: attrs}
			if err := netlink.LinkAdd(bridge); err != nil {
				return fmt.Errorf("bridge %s: %w", s.Bridge, err)
			}
		}
		if err := netlink.LinkSetAlias(bridge, s.Owner); err != nil {
			return fmt.Errorf("bridge %s: %w", s.Bridge, err)
		}
		return netlink.LinkSetUp(bridge)
	})
}

// Plug connects a node's namespace through a port, or cuts it off with the cable left in place, and routes to its peers. The name of a port
// is unique in the switch.
func (s Switch) Plug(port string, l Network, connected bool) error {
	if err := s.cable(port, l); err != nil {
		return fmt.Errorf("connecting %s: %w", l.Name, err)
	}
	if err := InNetNS(s.Name, func() error {
		link, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		if connected {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	}); err != nil {
		return fmt.Errorf("connecting %s: %w", l.Name, err)
	}
	return InNetNS(l.Name, l.routePeers)
}

// Unplug removes a port; a missing one is no error.
func (s Switch) Unplug(port string) error {
	if !NetNSExists(s.Name) {
		return nil
	}
	return InNetNS(s.Name, func() error { return removeLink(port) })
}

// cable makes the pair of interfaces between switch and node, unless both ends are there.
func (s Switch) cable(port string, l Network) error {
	there := false
	if err := InNetNS(l.Name, func() error {
		_, err := netlink.LinkByName(l.Uplink)
		there = err == nil
		return nil
	}); err != nil {
		return err
	}
	node, err := vnetns.GetFromPath(NetNSPath(l.Name))
	if err != nil {
		return err
	}
	defer node.Close()
	if err := InNetNS(s.Name, func() error {
		if _, err := netlink.LinkByName(port); err == nil && there {
			return nil
		}
		// An end without the other one belongs to a namespace that is gone.
		if err := removeLink(port); err != nil {
			return err
		}
		bridge, err := netlink.LinkByName(s.Bridge)
		if err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = port, bridge.Attrs().Index
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: l.Uplink, PeerNamespace: netlink.NsFd(int(node))})
	}); err != nil {
		return err
	}
	return InNetNS(l.Name, func() error {
		link, err := netlink.LinkByName(l.Uplink)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetAlias(link, l.Owner); err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
			return nil
		}
		return err
	}
	return netlink.LinkDel(link)
}
